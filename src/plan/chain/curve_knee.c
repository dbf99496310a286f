#include "plan/chain/curve_knee.h"

size_t curve_knee(curve_point_fn point_at, const void *curve, size_t count)
{
    if (count < 3)
        return 0;
    remat_sweep_point first = point_at(curve, 0), last = point_at(curve, count - 1);
    double width = (double)(last.peak_bytes - first.peak_bytes), height = (double)(first.total_cost - last.total_cost);
    size_t knee = 0;
    double deepest = 0;
    for (size_t i = 1; i < count - 1; i++) {
        remat_sweep_point point = point_at(curve, i);
        double right = (double)(point.peak_bytes - first.peak_bytes) / width;
        double down = (double)(first.total_cost - point.total_cost) / height;
        if (down - right > deepest) {
            deepest = down - right;
            knee = i;
        }
    }
    return knee;
}
