#include "plan/chain/curve_knee.h"

__extension__ typedef __int128 wide; /* products of two figures */

size_t curve_knee(curve_point_fn point_at, const void *curve, size_t count)
{
    if (count < 3)
        return 0;
    remat_sweep_point first = point_at(curve, 0), last = point_at(curve, count - 1);
    uint64_t width = last.peak_bytes - first.peak_bytes, height = first.total_cost - last.total_cost;
    size_t knee = 0;
    wide deepest = 0;
    for (size_t i = 1; i < count - 1; i++) {
        remat_sweep_point point = point_at(curve, i);
        wide depth =
            (wide)(first.total_cost - point.total_cost) * width - (wide)(point.peak_bytes - first.peak_bytes) * height;
        if (depth > deepest) {
            deepest = depth;
            knee = i;
        }
    }
    return knee;
}
