from adk_nb.planners.base_planner import BasePlanner as BasePlanner
from adk_nb.planners.built_in_planner import BuiltInPlanner as BuiltInPlanner
from adk_nb.planners.plan_re_act_planner import PlanReActPlanner as PlanReActPlanner
