#include <remat/remat.h>

const char *remat_status_text(remat_status status)
{
    switch (status) {
#define X(name, value, text) \
    case name: return text;
        REMAT_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

#define TEXT_OF(number)                   #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *remat_version(void)
{
    return VERSION_TEXT(REMAT_VERSION_MAJOR, REMAT_VERSION_MINOR, REMAT_VERSION_PATCH);
}
