"""Several devices.

Section 6 of the checklist; it does not apply to a single device.
"""

from ..checking import planned

planned(
    __name__,
    {
        "6.1": ("scaling_efficiency", "All devices together pay off against one"),
        "6.2": ("one_large_instance", "One instance with many devices, rather than many instances"),
        "6.3": ("fast_network", "The network between nodes is accelerated"),
        "6.4": ("gradient_sharing", "Other strategies of sharing gradients were tried"),
        "6.5": ("spread_communication", "Communication is spread over the backward pass"),
        "6.6": ("gradient_compression", "Gradient compression has been weighed"),
        "6.7": ("evaluation_elsewhere", "Evaluation does not hold up training"),
    },
)
