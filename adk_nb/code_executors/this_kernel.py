"""Code execution in the notebook's own IPython shell."""

import ast
import traceback
from typing import Any

from adk_nb.code_executors.output import Output
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.code_execution import CodeExecutionResult


def run_in_shell(code: str) -> CodeExecutionResult:
    """Run `code` in this thread in the shell's namespace, and capture its output.

    Raises:
        ConfigurationError: This process has no IPython shell.
        KeyboardInterrupt: Ctrl-C.
    """
    shell: Any = require("IPython", package="ipython").get_ipython()
    if shell is None:
        raise ConfigurationError(
            'KernelCodeExecutor(kernel="this") runs code in a notebook\'s own kernel, and this process is not one; '
            "leave kernel= out"
        )
    images = iter(range(1, 1_000_000))
    output = Output(lambda extension: f"image_{next(images)}.{extension}")
    exit_code = 0
    with require("IPython.utils.capture", package="ipython").capture_output() as captured:
        try:
            value = _run(shell.transform_cell(code), shell.user_ns)
            if value is not None:
                shell.display_pub.publish(*shell.display_formatter.format(value))
        except (Exception, SystemExit) as error:
            exit_code = 1
            output.write_stderr("".join(traceback.format_exception(type(error), error, _own_traceback(error))))
    output.write_stdout(captured.stdout)
    output.write_stderr(captured.stderr)
    for display in captured.outputs:
        output.add_display(display.data)
    return output.result(exit_code)


def _run(code: str, namespace: dict[str, Any]) -> Any:
    """Execute `code`; return the value of its last expression, or None."""
    tree = ast.parse(code, "<code>")
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return exec(compile(tree, "<code>", "exec"), namespace)
    del tree.body[-1]
    exec(compile(tree, "<code>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<code>", "eval"), namespace)


def _own_traceback(error: BaseException) -> Any:
    """The traceback without the frames of this file."""
    frame = error.__traceback__
    while frame and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return frame
