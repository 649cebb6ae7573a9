var a=Symbol.for("adk_nb.view"),l=100;async function u(t,e){for(let n=0;t.has_model?.(e)===!1&&n<l;n+=1)await new Promise(
o=>{setTimeout(o,50)});return t.get_model(e)}function y(t){let e=document.getElementById("adknb-style")??document.head.appendChild(
document.createElement("style"));e.id="adknb-style",e.textContent=t}async function m(t,e){y(e);let n=URL.createObjectURL(
new Blob([t],{type:"text/javascript"}));try{return await import(n)}finally{URL.revokeObjectURL(n)}}var f=()=>{let t;return{
async initialize({model:e}){let n=[],o=d=>{n.push(d)};e.on("msg:custom",o);let s=await u(e.widget_manager,e.get("code")),
r=s.get("version"),c=window;c[a]??={},c[a][r]??=m(s.get("js"),s.get("css"));let i=await c[a][r];e.off("msg:custom",o),t=
i.open(e,n)},render({el:e}){return t.show(e)}}};export{f as default};
