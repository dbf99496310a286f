/* comm/mpi_abi.h says what the header of Open MPI says. Where that is not installed there is nothing to compare. */
#include "comm/mpi_abi.h"
#include "support/fixture.h"

#if __has_include(<mpi.h>)
#include <mpi.h>

_Static_assert(MPI_ABI_SUCCESS == MPI_SUCCESS, "success");
_Static_assert((int)MPI_ABI_THREAD_FUNNELED == (int)MPI_THREAD_FUNNELED, "threads");
_Static_assert((int)MPI_ABI_SHARED == (int)MPI_COMM_TYPE_SHARED, "machines");
_Static_assert(MPI_ABI_ERROR_TEXT >= MPI_MAX_ERROR_STRING, "texts");
_Static_assert(MPI_ABI_VERSION_TEXT >= MPI_MAX_LIBRARY_VERSION_STRING, "versions");

/* A handle is an address in the header too, and arguments have the same types in the same order. */
#define SAME(name, type, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(name), type(__VA_ARGS__)), #name)
SAME(MPI_Init_thread, int, int *, char ***, int, int *);
SAME(MPI_Comm_split, int, MPI_Comm, int, int, MPI_Comm *);
SAME(MPI_Comm_split_type, int, MPI_Comm, int, int, MPI_Info, MPI_Comm *);
SAME(MPI_Isend, int, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
SAME(MPI_Irecv, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
SAME(MPI_Ibcast, int, void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *);
SAME(MPI_Iallgather, int, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Request *);
SAME(MPI_Iallgatherv, int, const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm,
     MPI_Request *);
SAME(MPI_Iallreduce, int, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
SAME(MPI_Test, int, MPI_Request *, int *, MPI_Status *);
_Static_assert(sizeof(MPI_Comm) == sizeof(mpi_handle) && sizeof(MPI_Request) == sizeof(mpi_handle), "handles");

/* The names of the objects: the header must expand to them. */
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static void test_header(void **state)
{
    (void)state;
    assert_non_null(strstr(TEXT(MPI_COMM_WORLD), "ompi_mpi_comm_world"));
    assert_non_null(strstr(TEXT(MPI_BYTE), "ompi_mpi_byte"));
    assert_non_null(strstr(TEXT(MPI_FLOAT), "ompi_mpi_float"));
    assert_non_null(strstr(TEXT(MPI_DOUBLE), "ompi_mpi_double"));
    assert_non_null(strstr(TEXT(MPI_SUM), "ompi_mpi_op_sum"));
    assert_non_null(strstr(TEXT(MPI_ERRORS_RETURN), "ompi_mpi_errors_return"));
    assert_non_null(strstr(TEXT(MPI_INFO_NULL), "ompi_mpi_info_null"));
    assert_ptr_equal(MPI_IN_PLACE, MPI_ABI_IN_PLACE);
    assert_ptr_equal(MPI_STATUS_IGNORE, MPI_ABI_STATUS_IGNORE);
}
#else
static void test_header(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
