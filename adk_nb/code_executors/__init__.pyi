from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.code_executors.built_in_code_executor import BuiltInCodeExecutor
from adk_nb.code_executors.kernel_code_executor import KernelCodeExecutor
from adk_nb.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from adk_nb.runtime.code_executor_context import CodeExecutorContext

__all__ = [
    "BaseCodeExecutor",
    "BuiltInCodeExecutor",
    "CodeExecutorContext",
    "KernelCodeExecutor",
    "UnsafeLocalCodeExecutor",
]
