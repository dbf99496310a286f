/* A recurrent network trained by backpropagation through time on 10,000 steps, in 100 times less memory.
 *
 * The network learns to repeat what it heard two steps ago. All steps are alike, so a profile of one layer is enough,
 * and the tape need not know how many steps there will be. It keeps some states and recomputes the others in the
 * backward pass. The last gradient is compared with that of a tape that keeps everything. ./rnn_bptt [epochs
 * [steps]] */
#include <remat/remat.h>
#include <remat/tape.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, HIDDEN = 32, STATE = BATCH * HIDDEN, DELAY = 2, SLOTS = 82 };

typedef struct weights {
    float recurrent[HIDDEN][HIDDEN], input[HIDDEN], output[HIDDEN];
} weights;
enum { WEIGHTS = sizeof(weights) / sizeof(float) };
typedef struct network {
    weights w, gradient;
    double loss, steps;
} network;

/* What sample `s` hears at time t: +1 or -1. (Before the start: anything.) */
static float heard(uint32_t t, uint32_t s)
{
    remat_random stream = remat_random_stream(1, s, 0);
    return remat_random_bits(&stream, t) & 1 ? 1.0f : -1.0f;
}

static float dot(const float *a, const float *b)
{
    float sum = 0;
    for (int j = 0; j < HIDDEN; j++)
        sum += a[j] * b[j];
    return sum;
}

/* h' = tanh(W h + u x), for each sample; the state is its own output. */
static int forward(void *user, const remat_tape_call *call)
{
    network *net = user;
    const float *h = call->input;
    float *next = call->output;
    for (uint32_t s = 0; s < BATCH; s++, h += HIDDEN, next += HIDDEN) {
        float sum[HIDDEN], x = heard(call->layer, s);
        for (int j = 0; j < HIDDEN; j++)
            sum[j] = net->w.input[j] * x;
        for (int i = 0; i < HIDDEN; i++)
            for (int j = 0; j < HIDDEN; j++)
                sum[j] += net->w.recurrent[i][j] * h[i];
        for (int j = 0; j < HIDDEN; j++)
            next[j] = tanhf(sum[j]);
        float error = dot(net->w.output, next) - heard(call->layer - DELAY, s);
        if (call->phase == REMAT_PHASE_FORWARD) /* once, however often the step runs */
            net->loss += (double)(error * error);
    }
    return 0;
}

/* Every step has its own part of the loss, the square of what it answers wrong. */
static int backward(void *user, const remat_tape_call *call)
{
    network *net = user;
    const float *h = call->input, *next = call->saved, *from = call->output_gradient;
    float *to = call->input_gradient, scale = 2.0f / (float)(net->steps * BATCH);
    for (uint32_t s = 0; s < BATCH; s++, h += HIDDEN, next += HIDDEN, from += HIDDEN, to += HIDDEN) {
        float sum[HIDDEN], x = heard(call->layer, s);
        float error = scale * (dot(net->w.output, next) - heard(call->layer - DELAY, s));
        for (int j = 0; j < HIDDEN; j++) {
            sum[j] = (from[j] + error * net->w.output[j]) * (1.0f - next[j] * next[j]);
            net->gradient.output[j] += error * next[j];
            net->gradient.input[j] += sum[j] * x;
        }
        for (int i = 0; i < HIDDEN; i++) {
            to[i] = dot(net->w.recurrent[i], sum);
            for (int j = 0; j < HIDDEN; j++)
                net->gradient.recurrent[i][j] += sum[j] * h[i];
        }
    }
    return 0;
}

/* Nothing comes from behind the last step. */
static int no_loss(void *user, const remat_tape_call *call)
{
    (void)user;
    memset(call->input_gradient, 0, STATE * sizeof(float));
    return 0;
}

static void check(const remat_context *ctx, remat_status status)
{
    if (status == REMAT_OK)
        return;
    fprintf(stderr, "rnn_bptt: %s\n", remat_context_message(ctx));
    exit(1);
}

static remat_profile *make_profile(remat_context *ctx, uint32_t layers)
{
    remat_profile *profile;
    check(ctx, remat_profile_create(ctx, &profile));
    check(ctx, remat_profile_set_input_bytes(profile, STATE * sizeof(float)));
    for (uint32_t i = 0; i < layers; i++)
        check(ctx, remat_profile_add(profile, REMAT_OTHER, STATE * sizeof(float), 1));
    return profile;
}

int main(int count, char **arguments)
{
    int epochs = count > 1 ? atoi(arguments[1]) : 10;
    uint32_t steps = count > 2 ? (uint32_t)atoi(arguments[2]) : 10000;
    network net = {.steps = steps};
    float start[STATE] = {0}, *w = (float *)&net.w, *g = (float *)&net.gradient;
    remat_random noise = remat_random_stream(2, 0, 0);
    for (uint64_t i = 0; i < WEIGHTS; i++)
        w[i] = 0.1f * (float)remat_random_normal(&noise, i);
    remat_tape_callbacks callbacks = {forward, backward, no_loss, &net};
    remat_tape *tape;
    remat_context *ctx;
    if (remat_context_create(NULL, &ctx) != REMAT_OK)
        return 1;
    remat_profile *layer = make_profile(ctx, 1);
    check(ctx, remat_tape_create_online(ctx, layer, SLOTS, &callbacks, NULL, &tape));
    for (int epoch = 0; epoch < epochs; epoch++) {
        for (size_t i = 0; i < WEIGHTS; i++)
            w[i] -= 0.25f * g[i];
        memset(g, 0, sizeof net.gradient);
        net.loss = 0;
        check(ctx, remat_tape_begin(tape, start));
        for (uint32_t t = 0; t < steps; t++)
            check(ctx, remat_tape_advance(tape));
        check(ctx, remat_tape_reverse(tape, NULL));
        printf("epoch %2d: loss %.4f\n", epoch, net.loss / net.steps / BATCH);
    }
    remat_tape_destroy(tape);
    uint64_t ours = remat_context_peak_bytes(ctx);
    weights gradient = net.gradient;
    memset(g, 0, sizeof net.gradient);
    remat_profile *chain = make_profile(ctx, steps);
    check(ctx, remat_tape_create(ctx, chain, &callbacks, NULL, &tape)); /* this one keeps everything */
    check(ctx, remat_tape_run(tape, start, NULL));
    uint64_t all = remat_tape_arena_bytes(tape);
    bool same = memcmp(&gradient, &net.gradient, sizeof gradient) == 0;
    printf("keeping all: %llu bytes; this tape: %llu, bookkeeping included: %.1f times less; the gradient is %s\n",
           (unsigned long long)all, (unsigned long long)ours, (double)all / (double)ours,
           same ? "the same to the bit" : "NOT THE SAME");
    remat_tape_destroy(tape);
    remat_profile_destroy(chain);
    remat_profile_destroy(layer);
    remat_context_destroy(ctx);
    return same ? 0 : 1;
}
