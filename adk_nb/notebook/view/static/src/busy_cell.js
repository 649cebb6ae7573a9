// The cell that keeps the kernel of a page busy, as Jupyter's messages tell.

/** @type {WeakMap<object, {busy: boolean, count: number}>} By the session of a page. */
const watched = new WeakMap();

/**
 * Note the cells that a kernel begins and ends.
 *
 * @param {any} manager
 */
export function watchCells(manager) {
  const session = manager?.context?.sessionContext;
  if (!session?.iopubMessage || watched.has(session)) return;
  const state = { busy: false, count: 0 };
  watched.set(session, state);
  session.iopubMessage.connect((/** @type {any} */ _, /** @type {any} */ message) => {
    const { header, parent_header: parent, content } = message;
    if (header.msg_type === "execute_input") Object.assign(state, { busy: true, count: content.execution_count });
    else if (header.msg_type === "status" && parent?.msg_type === "execute_request")
      state.busy = content.execution_state === "busy" && state.busy;
  });
}

/**
 * `cell [53]`, or `another cell` if its number is not known; empty if the kernel is not known to be busy.
 *
 * @param {any} manager
 */
export function busyWith(manager) {
  const session = manager?.context?.sessionContext;
  const state = session ? watched.get(session) : undefined;
  if (state?.busy && state.count) return `cell [${state.count}]`;
  return session?.session?.kernel?.status === "busy" ? "another cell" : "";
}
