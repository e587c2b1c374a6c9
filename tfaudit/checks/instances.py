"""Instance choice.

Section 2 of the checklist, with five questions of our own (2.3 to 2.7).
"""

from ..checking import planned

planned(
    __name__,
    {
        "2.1": ("instance_generation", "Instance generation"),
        "2.2": ("dedicated_accelerators", "Dedicated accelerators"),
        "2.3": ("utility_function", "What to optimise: cost, time or both"),
        "2.4": ("instances_compared", "Comparison of instance types"),
        "2.5": ("portable_program", "Ties to one machine"),
        "2.6": ("spot_ready", "Readiness for spot instances"),
        "2.7": ("hard_constraints", "Hard constraints of the job"),
    },
)
