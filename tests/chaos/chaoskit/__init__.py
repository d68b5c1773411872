"""The fault suite: breaks things on a real cluster while clients call, and checks what follows.

`kinds`, `schedule`, `calls`, `truth`, `facts` and `report` are pure; the others are thin shells around them.
"""
