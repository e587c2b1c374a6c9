"""Instance choice.

Section 2 of the checklist, with five questions of our own (2.3 to 2.7).
"""

from ..checking import planned

planned(
    __name__,
    {
        "2.1": ("instance_generation", "The instance is of a current generation"),
        "2.2": ("dedicated_accelerators", "Dedicated accelerators were tried"),
        "2.3": ("utility_function", "It is decided what to optimise: cost, time or both"),
        "2.4": ("instances_compared", "Several instance types were measured, not long ago"),
        "2.5": ("portable_program", "The program is not tied to one machine"),
        "2.6": ("spot_ready", "The job could run on spot instances"),
        "2.7": ("hard_constraints", "The job's hard constraints are known"),
    },
)
