"""Pages: the entries of a web page without a feed, found without selectors.

```
model.py       an entry, and what was found of a page: certain, a candidate to confirm, or none
page.py        a page as rows: elements, text, links; menus and margins
lists.py       the groups of links of one structure, and the box of each entry
titles.py      titles of the boxes; dates.py finds dates, entries.py the rest; structured.py reads JSON-LD
judged.py      how much each group looks like entries; doubts.py what is against the best
detect.py      the list of a page, of all these: a pure function
links.py       the identity of an entry
service.py     the look at an address: one request, after its robots.txt (robots.py, sql.py)
cli.py         the command `page`
```
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(name="pages", commands={"page": Part("pages.cli:page")})
