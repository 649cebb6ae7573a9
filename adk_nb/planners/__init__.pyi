from adk_nb.planners.base_planner import BasePlanner
from adk_nb.planners.built_in_planner import BuiltInPlanner
from adk_nb.planners.plan_re_act_planner import PlanReActPlanner

__all__ = ["BasePlanner", "BuiltInPlanner", "PlanReActPlanner"]
