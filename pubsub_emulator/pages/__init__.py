"""The frame of all pages: colours, styles, words, parts of a page, and how a page is put together.

`assets/` has everything that a browser gets:

    *.css, *.js   shared by all pages
    block/        views of a block: its proof as a trie, its ledger, its evidence
    run/          the page of a run
    lab/          the live page of a node
    report/       the report of an audit
    vendor/       libraries, unchanged (bench/vendor.py)

The live page loads these files as they are. A page that is one file has its modules linked into one
script, and may run no other.
"""
