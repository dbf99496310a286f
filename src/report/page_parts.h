/* The page, as the build put it together from web/: everything before the document and everything behind it. */
#ifndef REMAT_REPORT_PAGE_PARTS_H
#define REMAT_REPORT_PAGE_PARTS_H

extern const char page_head[], page_head_end[], page_tail[], page_tail_end[];

#endif
