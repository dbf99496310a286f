#!/usr/bin/python3
"""Writes chats.json: templates, conversations, and what Jinja makes of them with the settings of transformers.

    python3 tests/data/chats/make_chats.py        needs jinja2 (Debian: python3-jinja2)
"""
import json
import os

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATES = {
    # Blocks on lines of their own, as most templates are written.
    "chatml": """{%- if messages[0]['role'] != 'system' %}
    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role in ['user', 'system', 'assistant'] and not message.tool_calls %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- else %}
        {{- raise_exception('role ' ~ message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    # Headers, trimmed content, a default that is set where nothing is given.
    "headers": """{{- bos_token }}
{%- if not date is defined %}{%- set date = "1 Jan 2025" %}{%- endif %}
{#- The system's message comes first. #}
{%- if messages[0]["role"] == "system" %}
    {%- set system = messages[0]["content"] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nDate: " + date + "\\n\\n" ~ system ~ "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    # One line; turns must alternate.
    "inst": "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
            "{{ raise_exception('turns must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
            "{{ bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}{% else %}"
            "{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    # A namespace, a list backwards, thoughts that are cut from earlier turns.
    "thinking": """{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and not message.content.startswith('<tool>') %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' in message.content else message.content %}
        {%- if loop.index0 > ns.last and loop.last %}
            {{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' + content }}
        {%- else %}
            {{- '<|im_start|>assistant\\n' + content }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content }}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}""",
    # Blanks and line ends around tags that have no minus.
    "blanks": """  {% if messages %}
  a {{ messages|length }}
    {% for m in messages if m.role != 'system' %}
  - {{ loop.index }}/{{ loop.length }} {{ m.role|upper }}: {{ m.content|tojson }}
    {%+ if loop.last %} end{% endif %}

    {% else %}
nobody
    {% endfor %}
  {% endif %}
{# comment #}
 z {{ 'x' if add_generation_prompt else 'y' }}
""",
    # Macros, blocks that are set, filters, tests, arithmetic, dictionaries.
    "parts": """{%- macro turn(m, mark='*') -%}
{{ mark }}{{ m['role'] | capitalize }}: {{ m.content | default('nothing') | replace('a', 'A') }}
{% endmacro -%}
{%- set head %}[{{ messages | map_free | default('h') if false else 'head' }}]{% endset -%}
{{ head }}{%- for m in messages %}{{ turn(m, mark='#') if loop.first else turn(m) }}{% if loop.index == 3 %}{% break %}{% endif %}{%- endfor %}
{%- set d = {'a': 1, 'b': [1, 2, 3], 'c': none} %}
{{- d.b[-1] + d['a'] * 3 - 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ d.c is none }} {{ d.missing is defined }} {{ d | tojson }} {{ (1, 2)[1] }}
{%- for k, v in d.items() %} {{ k }}={{ v }}{% endfor %}
{%- for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %} {{ i }}{% endfor %}
{%- set users = messages | selectattr('role', 'equalto', 'user') | list %} {{ users | length }} {{ users[-1].content[:2] }}
""".replace("messages | map_free | default('h') if false else 'head'", "'head'"),
}
CONVERSATIONS = [
    [("user", "Hi")],
    [("user", " Hi \"you\"\n"), ("assistant", "  Hello, é!\n")],
    [("system", "Be kind. "), ("user", "Hi"), ("assistant", "Hello")],
    [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nYes"), ("user", "{{ b }}"), ("assistant", "No")],
    [("user", "a"), ("user", "b")],
]


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def main():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = raise_exception
    chats = []
    for name, template in TEMPLATES.items():
        for conversation in CONVERSATIONS:
            messages = [{"role": role, "content": content} for role, content in conversation]
            for generation in (False, True):
                try:
                    text = environment.from_string(template).render(messages=messages, add_generation_prompt=generation,
                                                                    bos_token="<s>", eos_token="</s>")
                except jinja2.exceptions.TemplateError:
                    text = None
                chats.append({"template": name, "messages": messages, "generation": generation, "text": text})
    with open(os.path.join(os.path.dirname(__file__), "chats.json"), "w", encoding="utf-8") as out:
        json.dump({"templates": TEMPLATES, "chats": chats}, out, indent=0, ensure_ascii=False)
        out.write("\n")


main()
