/* A chat template: what compiles writes a conversation, or says why not. */
#include "fuzz/fuzz.h"

#include "data/tokenizer/chat_template.h"

void fuzz_chat_template(const uint8_t *data, size_t size)
{
    static const chat_message messages[] = {
        {"system", "Be kind."}, {"user", "Hi {{ x }}"}, {"assistant", "<think>a</think>b"}};
    const chat_values values = {"<s>", "</s>", size % 2 == 0};
    remat_context *context = fuzz_begin();
    char *text = fuzz_text(data, size);
    chat_template *template;
    remat_status status = chat_template_compile(context, text, "template", &template);
    FUZZ_CHECK((template != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status)) {
        const char *out;
        size_t length;
        status = chat_template_render(template, messages, 3, &values, &out, &length);
        if (fuzz_accepted(context, status))
            FUZZ_CHECK(strlen(out) == length);
    }
    chat_template_destroy(template);
    free(text);
    fuzz_end(context);
}
