/* Chat templates: how the messages of a conversation become one text. They are written in Jinja, of which this reads the part
 * that the templates of language models use:
 *
 *   {{ expression }}  {% if %} {% elif %} {% else %} {% endif %}  {% for x in list if ... %} {% endfor %}  {% set x = ... %}
 *   {% set x %}...{% endset %}  {% macro f(a, b=1) %} {% endmacro %}  {% generation %}  {# comment #}  and - beside a bracket
 *   literals, lists, dictionaries, + - * // / % ~, comparisons, in, not, and, or, x if y else z, a.b a[b] a[b:c:d]
 *   filters and tests with a bar and with `is`; strings' and dictionaries' methods; namespace, range, raise_exception
 *
 * Why an interpreter and not a list of known templates: models come with templates of their own, and each release of a family
 * changes its own a little. A wrong blank in a template costs more than it saves. */
#ifndef REMAT_DATA_TOKENIZER_CHAT_TEMPLATE_H
#define REMAT_DATA_TOKENIZER_CHAT_TEMPLATE_H

#include <stdbool.h>

#include "base/error.h"

typedef struct chat_message {
    const char *role, *content;
} chat_message;

typedef struct chat_template chat_template;

/* Compiles a template. `name` stands for it in messages, with the line, and is copied. REMAT_BAD_INPUT. */
remat_status chat_template_compile(remat_context *context, const char *text, const char *name,
                                   chat_template **template);
void chat_template_destroy(chat_template *template); /* NULL is fine */

/* What a template sees besides messages. */
typedef struct chat_values {
    const char *bos_token, *eos_token; /* NULL: not defined */
    bool add_generation_prompt;
} chat_values;

/* Writes messages. The text belongs to the template until the next call. REMAT_BAD_INPUT: the template cannot write them. */
remat_status chat_template_render(chat_template *template, const chat_message *messages, size_t count,
                                  const chat_values *values, const char **text, size_t *length);

#endif
