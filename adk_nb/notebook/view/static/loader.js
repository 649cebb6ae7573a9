var a=Symbol.for("adk_nb.view"),l=100;async function u(e,t){for(let n=0;e.has_model?.(t)===!1&&n<l;n+=1)await new Promise(
o=>{setTimeout(o,50)});return e.get_model(t)}function y(e){let t=document.getElementById("adknb-style")??document.head.appendChild(
document.createElement("style"));t.id="adknb-style",t.textContent=e}async function m(e,t){y(t);let n=URL.createObjectURL(
new Blob([e],{type:"text/javascript"}));try{return await import(n)}finally{URL.revokeObjectURL(n)}}var f=()=>{let e;return{
async initialize({model:t}){let n=[],o=d=>{n.push(d)};t.on("msg:custom",o);let s=await u(t.widget_manager,t.get("code")),
r=s.get("version"),c=window;c[a]??={},c[a][r]??=m(s.get("js"),s.get("css"));let i=await c[a][r];t.off("msg:custom",o),e=
i.open(t,n)},render({el:t}){return e.show(t)}}};export{f as default};
