#include "backend/rotary.h"

#include <math.h>

/* The share of a frequency that stays as it is; the rest is divided by the factor. */
static double llama3_share(const rotary_angles *angles, double frequency)
{
    const double turns = angles->length * frequency / (2 * M_PI);
    return fmin(1, fmax(0, (turns - angles->low) / (angles->high - angles->low)));
}

/* The pair that turns so many times within the length. */
static double pair_of(const rotary_angles *angles, double size, double turns)
{
    return size * log(angles->length / (turns * 2 * M_PI)) / (2 * log(angles->theta));
}

static double yarn_share(const rotary_angles *angles, double size, double i)
{
    const double first = fmax(floor(pair_of(angles, size, angles->high)), 0);
    double last = fmin(ceil(pair_of(angles, size, angles->low)), size - 1);
    if (first == last)
        last += 0.001;
    return 1 - fmin(1, fmax(0, (i - first) / (last - first)));
}

float rotary_frequency(const rotary_angles *angles, size_t size, size_t i)
{
    const double frequency = pow(angles->theta, -2.0 * (double)i / (double)size);
    double share = 1;
    switch (angles->scaling) {
    case ROTARY_PLAIN: break;
    case ROTARY_LINEAR: share = 0; break;
    case ROTARY_LLAMA3: share = llama3_share(angles, frequency); break;
    case ROTARY_YARN: share = yarn_share(angles, (double)size, (double)i); break;
    }
    return (float)(share == 1 ? frequency : share * frequency + (1 - share) * frequency / angles->factor);
}
