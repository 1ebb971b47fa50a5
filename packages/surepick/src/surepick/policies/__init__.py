"""The algorithms. They never see an environment, a clock, a file or a random generator.

`base` says what an algorithm is, `registry` names them all, `verdict` puts an answer into words. Others see nothing
else of this folder.
"""
