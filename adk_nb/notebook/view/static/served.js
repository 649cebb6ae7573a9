var h=`adknb-${Math.random().toString(36).slice(2)}`;var p=e=>e.filter(t=>t!=null&&t!=="").map(t=>t??"");function o(e,t,...r){let n=document.createElement(e),i=t.split(" ").
filter(Boolean);return i.length&&(n.className=i.map(s=>`adknb-${s}`).join(" ")),n.append(...p(r)),n}function d(e,t,r){let n=o(
"button",`button ${t}`,e);return n.type="button",n.addEventListener("click",r),n}function f(e,...t){return e.replaceChildren(...p(t)),e}function u(e,t){let r=d(e,"small",async()=>{try{await navigator.clipboard.writeText(t()),r.textContent="Copied"}catch{r.
textContent="Select the text, and copy it"}setTimeout(()=>{r.textContent=e},1500)});return r}function v({token:e,curl:t,page:r}){let n=[o("div","served-line",o("span","served-name","token"),o("code","",e),u("Copy \
token",()=>e)),o("div","served-line",o("span","served-name","try it"),o("code","",t),u("Copy command",()=>t))];if(r){let i=o(
"a","","Open Google's dev UI");Object.assign(i,{href:r,target:"_blank",rel:"noopener noreferrer"}),n.push(o("div","serve\
d-line",o("span","served-name","page"),i))}return n}var x={render({model:e,el:t}){let r=o("span","served-status"),n=o("d\
iv","served-secret"),i=o("div","served-paths",e.get("paths")),s=d("Show token","served-show",()=>{n.childElementCount?(n.
replaceChildren(),s.textContent="Show token",s.setAttribute("aria-expanded","false")):e.send({kind:"token"})});s.setAttribute(
"aria-expanded","false");let c=()=>{let a=e.get("running");r.textContent=a?`${e.get("name")} is served at ${e.get("url")}`:
`${e.get("name")} is served no more`,s.hidden=i.hidden=!a,a||n.replaceChildren()},l=a=>{a.kind==="token"&&(f(n,...v(a)),
s.textContent="Hide token",s.setAttribute("aria-expanded","true"))};return c(),e.on("change:running",c),e.on("msg:custom",
l),t.append(o("div","served",o("div","served-head",r,s),i,n)),()=>{e.off("change:running",c),e.off("msg:custom",l)}}};export{x as default};
