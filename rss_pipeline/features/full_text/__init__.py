"""Full text: the article of the page behind an item whose feed has a teaser only.

```
model.py    what is read of a page: an article, or the reason why there is none
extract.py  the article of a page, by trafilatura: a pure function
walls.py    pages in place of an article: walls, lists, stubs, pages made by scripts
```
"""

from rss_pipeline.features.feature import Feature

FEATURE = Feature(name="full_text", needs=("pages",))
