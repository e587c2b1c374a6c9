"""Several devices.

Section 6 of the checklist; it does not apply to a single device.
"""

from ..checking import planned

planned(
    __name__,
    {
        "6.1": ("scaling_efficiency", "Scaling over devices"),
        "6.2": ("one_large_instance", "One instance or many"),
        "6.3": ("fast_network", "Network between nodes"),
        "6.4": ("gradient_sharing", "Sharing of gradients"),
        "6.5": ("spread_communication", "Spread of communication"),
        "6.6": ("gradient_compression", "Gradient compression"),
        "6.7": ("evaluation_elsewhere", "Evaluation during training"),
    },
)
