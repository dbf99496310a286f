#include "support/parameter_of_0_1.h"

remat_status remat_trainer_get_parameter(const struct remat_trainer *trainer, size_t position,
                                         parameter_of_0_1 *parameter);

remat_status get_parameter_of_0_1(const struct remat_trainer *trainer, size_t position, parameter_of_0_1 *parameter)
{
    return remat_trainer_get_parameter(trainer, position, parameter);
}
