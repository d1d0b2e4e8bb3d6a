"""What a program does before it has done it: findings, reports, plans.

It looks at programs as they are traced, with the lines of the user's that they come from.
"""

from phalanx.base.lazily import later as _later

_later(__name__)
