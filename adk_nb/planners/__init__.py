"""Planners, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BasePlanner": "adk_nb.planners.base_planner",
        "BuiltInPlanner": "adk_nb.planners.built_in_planner",
        "PlanReActPlanner": "adk_nb.planners.plan_re_act_planner",
    },
)
