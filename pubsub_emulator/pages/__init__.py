"""The frame of all pages: colours, styles, formats of figures, and the assembly of pages.

`assets/` has everything that a browser gets:

    *.css, *.js   shared by all pages
    block/        views of a block: its proof as a trie, its ledger, its evidence
    run/          the page of a run
    lab/          the live page of a node
    report/       the report of an audit
    vendor/       libraries, unchanged (bench/vendor.py)

The live page loads these files as they are. In a page that is one file, the modules are linked into
one script, and the page's policy only allows this script.
"""
