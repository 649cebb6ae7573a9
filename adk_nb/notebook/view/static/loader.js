var c=Symbol.for("adk_nb.view"),d=100;async function l(e,t){for(let n=0;e.has_model?.(t)===!1&&n<d;n+=1)await new Promise(
o=>setTimeout(o,50));return e.get_model(t)}function u(e){let t=document.getElementById("adknb-style")??document.head.appendChild(
document.createElement("style"));t.id="adknb-style",t.textContent=e}async function w(e,t){u(t);let n=URL.createObjectURL(
new Blob([e],{type:"text/javascript"}));try{return await import(n)}finally{URL.revokeObjectURL(n)}}var y=()=>{let e;return{
async initialize({model:t}){let n=[],o=i=>n.push(i);t.on("msg:custom",o);let s=await l(t.widget_manager,t.get("code")),a=s.
get("version");window[c]??={},window[c][a]??=w(s.get("js"),s.get("css"));let r=await window[c][a];t.off("msg:custom",o),
e=r.open(t,n)},render({el:t}){return e.show(t)}}};export{y as default};
