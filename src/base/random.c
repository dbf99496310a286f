#include <remat/random.h>

#include <math.h>

static void philox_round(uint32_t counter[4], const uint32_t key[2])
{
    uint64_t a = (uint64_t)0xD2511F53u * counter[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * counter[2];
    uint32_t second = counter[1], fourth = counter[3];
    counter[0] = (uint32_t)(b >> 32) ^ second ^ key[0];
    counter[1] = (uint32_t)b;
    counter[2] = (uint32_t)(a >> 32) ^ fourth ^ key[1];
    counter[3] = (uint32_t)a;
}

void remat_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t round_key[2] = {key[0], key[1]};
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        philox_round(out, round_key);
        round_key[0] += 0x9E3779B9u;
        round_key[1] += 0xBB67AE85u;
    }
}

remat_random remat_random_stream(uint64_t seed, uint32_t layer, uint32_t step)
{
    return (remat_random){{(uint32_t)seed, (uint32_t)(seed >> 32)}, {layer, step}};
}

void remat_random_block(const remat_random *stream, uint64_t block, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream->high[0], stream->high[1]};
    remat_philox4x32(counter, stream->key, out);
}

uint64_t remat_random_bits(const remat_random *stream, uint64_t position)
{
    uint32_t block[4];
    remat_random_block(stream, position, block);
    return (uint64_t)block[1] << 32 | block[0];
}

float remat_random_uniform(const remat_random *stream, uint64_t position)
{
    return (float)(remat_random_bits(stream, position) >> 40) * 0x1p-24f;
}

uint64_t remat_random_below(const remat_random *stream, uint64_t position, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)remat_random_bits(stream, position) * bound >> 64);
}

double remat_random_normal(const remat_random *stream, uint64_t position)
{
    /* Box and Muller's transform; the first uniform is in (0, 1] so that its logarithm is finite. */
    uint32_t block[4];
    remat_random_block(stream, position, block);
    uint64_t first = (uint64_t)block[1] << 32 | block[0], second = (uint64_t)block[3] << 32 | block[2];
    double radius = sqrt(-2.0 * log(((double)(first >> 11) + 1.0) * 0x1p-53));
    return radius * cos(2.0 * M_PI * ((double)(second >> 11) * 0x1p-53));
}
