"""Names of the metadata that nodes get from the structure of their document, and the version of how documents are cut."""

SECTION_PATH = "section_path"
TABLE_HEADER = "table_header"
PAGE_LABEL = "page_label"
PAGE_STARTS = "page_starts"
BOOKMARKS = "bookmarks"
PATH_SEPARATOR = " > "
CHUNKING = "hierarchical-1"
