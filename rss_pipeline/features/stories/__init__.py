"""Stories: what several feeds write of one event, found together, with the reasons.

No model is needed. model.py (an item, a decision), copies.py (the same article again), words.py,
vocabulary.py, paired.py (scripts without spaces), facts.py and article.py (an item read), boilerplate.py
(what a feed repeats), pair.py (two articles compared), judge.py (the decision, with the weights),
frequencies.py, postings.py, kept.py and window.py (the stories of a week), window_file.py (their file beside
the search index). The same items in the same order give the same stories.

It stores nothing yet, so it is not in the list of features: `python -m benchmarks.stories` uses it.
"""
