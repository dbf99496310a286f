#include "graph/schedule_writer.h"

static void write_step(output *out, const remat_profile *chain, remat_step step)
{
    static const char *const openings[] = {
        [REMAT_FORWARD] = "{\"op\": \"forward\", \"layer\": ",
        [REMAT_LOSS] = "{\"op\": \"loss\"",
        [REMAT_BACKWARD] = "{\"op\": \"backward\", \"layer\": ",
        [REMAT_DROP_X] = "{\"op\": \"drop\", \"what\": \"x\", \"layer\": ",
        [REMAT_DROP_STATE] = "{\"op\": \"drop\", \"what\": \"s\", \"layer\": ",
    };
    output_text(out, openings[step.op]);
    if (step.op != REMAT_LOSS)
        output_number(out, step.layer);
    if (step.op == REMAT_FORWARD && step.save != REMAT_NO_SAVE)
        output_text_field(out, ", ", "save", chain->layers[step.layer].modes[step.save].name);
    output_text(out, "}");
}

remat_status schedule_write_step(void *user, remat_step step)
{
    schedule_writer *writer = user;
    output_text(writer->out, writer->count++ == 0 ? "\n  " : ",\n  ");
    write_step(writer->out, writer->chain, step);
    return writer->out->status;
}
