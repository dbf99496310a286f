/* The page, which the build makes from web/: the parts before and after the document. */
#ifndef REMAT_REPORT_PAGE_PARTS_H
#define REMAT_REPORT_PAGE_PARTS_H

extern const char page_head[], page_head_end[], page_tail[], page_tail_end[];

#endif
