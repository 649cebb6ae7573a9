var Wt=new WeakMap;function xe(i){let t=i?.context?.sessionContext;if(!t?.iopubMessage||Wt.has(t))return;let e={busy:!1,
count:0};Wt.set(t,e),t.iopubMessage.connect((s,n)=>{let{header:r,parent_header:a,content:h}=n;r.msg_type==="execute_inpu\
t"?Object.assign(e,{busy:!0,count:h.execution_count}):r.msg_type==="status"&&a?.msg_type==="execute_request"&&(e.busy=h.
execution_state==="busy"&&e.busy)})}function ye(i){let t=i?.context?.sessionContext,e=t?Wt.get(t):void 0;return e?.busy&&
e.count?`cell [${e.count}]`:t?.session?.kernel?.status==="busy"?"another cell":""}var A="application/vnd.jupyter.widget-view+json",X=i=>i.metadata?.[A]?.adk_nb,$e="application/vnd.jupyter.widget-state+j\
son",zt="<p><em>This notebook is not trusted, so the live view is not drawn here. Run <code>%confirm</code> to get its c\
ard in a new cell, or run the command “Trust Notebook”.</em></p>";function ws(i){let t=X(i);if(!t)return i;let{[A]:e,
...s}=i.data;typeof s["text/html"]=="string"&&(s["text/html"]=s["text/html"].replace(zt,""));let{[A]:n,...r}=i.metadata;
return t==="run"&&e&&(r.adk_nb={view:e.model_id}),{...i,data:s,metadata:r}}function ks(i){let t=i?.widgets?.[$e];if(!t?.
state)return i;let e=Object.keys(t.state),s=u=>vs.test(t.state[u].state?._anywidget_id??""),n=e.filter(s),r=n.flatMap(u=>[
t.state[u].state.code,t.state[u].state.layout]),a=new Set([...n,...r.map(u=>String(u??"").replace("IPY_MODEL_",""))]),h=Object.
fromEntries(Object.entries(t.state).filter(([u])=>!a.has(u))),{widgets:l,...d}=i;return Object.keys(h).length?{...d,widgets:{
...l,[$e]:{...t,state:h}}}:d}var vs=/^adk_nb\.notebook\.view\.widget\./;function I(i){let t=i?.context?.model;return typeof t?.
toJSON=="function"&&!t.collaborative?t:null}function nt(i,t){for(let e of I(i)?.cells??[])for(let s=0;s<(e.outputs?.length??
0);s+=1)if(e.outputs.get(s).data?.[A]?.model_id===t)return String(e.sharedModel?.getSource()??"");return""}function xs(i,t){
let{path:e,sessionContext:s}=i.context,n=t.flatMap(({id:r,outputs:a=[]})=>a.flatMap((h,l)=>X(h)==="page"?[[r,l,h.data[A]?.
model_id]]:[]));try{localStorage.setItem(`adk_nb:${e}`,JSON.stringify({kernel:s.session?.kernel?.id,views:n}))}catch{}}function Se(i,t,e,s){
let{path:n,sessionContext:r}=i.context;try{let{kernel:a,views:h}=JSON.parse(localStorage.getItem(`adk_nb:${n}`)??"{}");return a===
r.session?.kernel?.id&&h.some(l=>`${l}`==`${[e,s,t]}`)}catch{return!1}}function H(i){let t=I(i),e=Symbol.for("adk_nb.kep\
t_out");if(!t||t[e])return!!t;t[e]=!0;let s=t.toJSON.bind(t);return t.toJSON=()=>{let n=s();xs(i,n.cells);let r=n.cells.
map(a=>a.outputs?{...a,outputs:a.outputs.map(ws)}:a);return{...n,metadata:ks(n.metadata),cells:r}},!0}function Oe(i,t){let e=[];for(let{id:s,outputs:n}of i.cells)for(let r=0;r<(n?.length??0);r+=1)t(n.get(r),s,r)&&e.push([n,
r]);return e}async function Ae(i,t){let e=I(t);if(!e)return;H(t),await t.context.ready;let{dirty:s}=e,n=({metadata:a})=>a?.
adk_nb?.view===i,r=(a,h,l)=>n(a)||!X(a)&&Se(t,i,h,l);for(let[a,h]of Oe(e,r)){let{adk_nb:l,...d}=a.get(h).metadata,u=n(a.
get(h))?"run":"page",c={version_major:2,version_minor:0,model_id:i},m={...a.get(h).data,[A]:c};u==="run"&&!a.trusted&&(m["\
text/html"]=`${m["text/html"]??""}${zt}`),a.set(h,{...a.get(h).toJSON(),data:m,metadata:{...d,[A]:{adk_nb:u}}})}e.dirty=
s}var ot=class{constructor(t,e){this.store=t,this.manager=e}get page(){return this.manager?.context?.sessionContext?.session?.
kernel?.clientId}get known(){return I(this.manager)[Symbol.for("adk_nb.put_here")]??=new Set}get late(){return this.store.
late||this.known.has(this.store.own_id)}ask(t=["idle","running","pending"]){let{gone:e,status:s}=this.store;e||!I(this.manager)||
!this.late||t.includes(s.status)||this.page&&this.store.send({kind:"need",what:"missed",id:this.page})}touch(t){t.op==="\
status"&&this.ask(["idle","running"]),!(t.op!=="panel"||!this.page||!I(this.manager))&&(t.name==="missed"&&t.id===this.page&&
queueMicrotask(()=>this.put(t.data,e=>X(e)!=="page")),t.name==="beside"&&t.id!==this.page&&queueMicrotask(()=>this.putBeside(
t.data)))}putBeside(t){t.some(({data:e})=>this.known.has(e[A].model_id))||this.put(t,()=>!0)}put(t,e){let[s,n]=this.place(
e);for(let{at:r,data:a,metadata:h}of s?t:[]){a[A]&&this.known.add(a[A].model_id);let l={output_type:"display_data",data:a,
metadata:h};r===null?s.add(l):n+r<s.length&&s.set(n+r,l)}}place(t){let e=s=>s.data[A]?.model_id===this.store.own_id&&t(s);
return Oe(I(this.manager),e)[0]??[]}};var ys=`adknb-${Math.random().toString(36).slice(2)}`,Ee=0;function g(){return Ee+=1,`${ys}-${Ee}`}var Ce=i=>i.filter(t=>t!=
null&&t!=="").map(t=>t??"");function o(i,t,...e){let s=document.createElement(i),n=t.split(" ").filter(Boolean);return n.
length&&(s.className=n.map(r=>`adknb-${r}`).join(" ")),s.append(...Ce(e)),s}function p(i,t,e){let s=o("button",`button ${t}`,
i);return s.type="button",s.addEventListener("click",e),s}function S(...i){return o("fieldset","buttons",...i)}function f(i,...t){
return i.replaceChildren(...Ce(t)),i}function x(i,t,e=""){let s=document.createElementNS("http://www.w3.org/2000/svg",i);
for(let[n,r]of Object.entries(t))s.setAttribute(n,String(r));return s.textContent=e,s}function Kt(...i){let t=o("div","",
...i),e=o("div","clip",t),s=p("Show all","small show-all",()=>{n=!n,r(),n||e.scrollIntoView({block:"nearest"})}),n=!1,r=()=>{
let a=t.offsetHeight>480;e.toggleAttribute("data-cut",a&&!n),s.hidden=!a,s.textContent=n?"Show less":"Show all",s.setAttribute(
"aria-expanded",String(n))};return s.hidden=!0,s.addEventListener("keydown",a=>a.stopPropagation()),new ResizeObserver(r).
observe(t),o("div","",e,s)}function $(i,t){let e=p(i,"small",async()=>{try{await navigator.clipboard.writeText(t()),e.textContent=
"Copied"}catch{e.textContent="Select the text, and copy it"}setTimeout(()=>{e.textContent=i},1500)});return e}function rt(i,t,e){
let s=o("a","");s.href=URL.createObjectURL(new Blob([e],{type:t})),s.download=i,s.click(),setTimeout(()=>URL.revokeObjectURL(
s.href),1e3)}var $s=2e4,Ss="and as assert async await begin break case catch class const continue def default del do elif else end en\
um except export extends final finally fn for from func function global if impl implements import in instanceof interfac\
e is lambda let match mut new nonlocal not of or package pass private protected pub public raise return select static st\
ruct super switch this throw try type typeof use using var void while with yield",Os="False None True false nil null sel\
f true undefined",As="all alter and as asc between by case create delete desc distinct drop else end exists from full gr\
oup having in index inner insert into is join key left like limit not null offset on or order outer primary right select\
 set table then union unique update values view when where with",Es=new Set(Ss.split(" ")),Le=new Set(Os.split(" ")),Cs=new Set(
As.split(" ")),Ls=new Set("bash console dockerfile ini makefile perl py python python3 r ruby sh shell toml yaml yml".split(
" ")),Jt=new Set(["","log","markdown","md","output","plain","plaintext","text","txt"]);function Ts(i){let t=Ls.has(i)?"#\
[^\\n]*":i==="sql"?"--[^\\n]*":"//[^\\n]*|/\\*[^]*?\\*/",e=`"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.\
)*'|\`(?:[^\`\\\\]|\\\\.)*\``,s="\\b(?:0[xX][\\da-fA-F]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b";return new RegExp(
`(${t})|(${e})|(${s})|(@?[\\p{L}_$][\\p{L}\\p{N}_$]*)(?=(\\s*\\()?)`,"gu")}function Ms(i,t,e){return t==="json"?Le.has(i)?
"constant":"":i.startsWith("@")?"name":(t==="sql"?Cs.has(i.toLowerCase()):Es.has(i))?"keyword":Le.has(i)?"constant":e?"n\
ame":""}function Q(i,t){if(Jt.has(t)||i.length>$s)return[document.createTextNode(i)];let e=[],s=0;for(let n of i.matchAll(
Ts(t))){let[r,a,h,l,d,u]=n,c=a?"comment":h?"string":l?"number":Ms(d,t,!!u);c&&(e.push(document.createTextNode(i.slice(s,
n.index)),o("span",`code-${c}`,r)),s=n.index+r.length)}return[...e,document.createTextNode(i.slice(s))]}function js(i){let t=[],
e="";for(let s of i.split(`
`)){let[,n="",r=""]=/^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)/.exec(s)??[];!e&&n&&t.push(r.toLowerCase()),!e&&n?e=n:e&&n.startsWith(
e)&&!r&&(e="")}return t}function at(i,t,e){let s=[...i.querySelectorAll("pre:not(.adknb-shown-code)")];if(!s.length)return;
let n=js(t);for(let[r,a]of s.entries()){let{textContent:h,parentElement:l}=a;if(!l||l.classList.contains("adknb-code"))continue;
let d=n[r]??"",u=e||r<s.length-1;(a.querySelector("code")??a).replaceChildren(...Q(h,d));let c=Jt.has(d)?"code":d,m=u?$(
"Copy",()=>h.replace(/\n$/,"")):null;m?.setAttribute("aria-label",`Copy ${c}`);let w=o("div","code");a.tabIndex=0,a.setAttribute(
"role","group"),a.setAttribute("aria-label",c),a.replaceWith(w),w.append(o("div","code-head",o("span","",Jt.has(d)?"":d),
m),a)}}var Te=new Set("A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP TABLE TBODY TD TH\
 THEAD TR UL".split(" ")),Ns=new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" ")),_s=/^(https?:|mailto:|#)/i,
Is=new Set([...Te,"DETAILS","MARK","SECTION","SMALL","SUMMARY"]),Me=i=>P(i,Is,["open","style"]);function P(i,t=Te,e=[]){
let s=document.createElement("template");s.innerHTML=i;for(let n of[...s.content.querySelectorAll("*")]){let r=n.tagName.
toUpperCase();if(Ns.has(r)){n.remove();continue}let a=r==="A"?n.getAttribute("href"):null,h=(r==="TD"||r==="TH")&&n.getAttribute(
"style")==="text-align: right";for(let{name:l}of[...n.attributes])["start","title","align",...e].includes(l)||n.removeAttribute(
l);h&&n.classList.add("adknb-number"),a&&_s.test(a.trim())&&(n.setAttribute("href",a.trim()),n.setAttribute("target","_b\
lank"),n.setAttribute("rel","noopener noreferrer nofollow")),t.has(r)||n.replaceWith(...n.childNodes)}for(let n of s.content.
querySelectorAll("table")){let r=o("div","wide");n.replaceWith(r),r.append(n)}return s.content}var Ut=i=>i.html!==null&&
i.html!==void 0;function W(i,t){let e=o("div","html",P(i));return Z(e,t),e}function Z(i,t){/\\[([]/.test(i.textContent)&&
(t?.rendermime??t?._rendermime)?.latexTypesetter?.typeset(i)}var F=class{constructor(t){this.manager=t,this.length=0,this.
tail=o("div","html"),this.caret=o("span","caret","▌"),this.complete=o("div","html"),this.node=o("div","growing",this.complete,
this.tail)}paint({html:t,tail:e}){if(t!==null&&t.length>this.length){let n=document.createElement("div");n.append(P(t.slice(
this.length))),this.complete.append(...n.childNodes),Z(this.complete,this.manager),this.length=t.length}f(this.tail,P(e)),
Z(this.tail,this.manager);let s=this.tail;for(;s.lastElementChild?.matches("p, ul, ol, li, blockquote, pre, h4, h5, h6, \
pre > code");)s=s.lastElementChild;s.append(this.caret)}};function M(i,t="Search suggestions"){let e=o("iframe","page");
return e.sandbox="allow-popups allow-popups-to-escape-sandbox",e.referrerPolicy="no-referrer",e.title=t,e.srcdoc=i,e}function Gt(i,t){
if(!/^data:image\//.test(i))return null;let e=o("img","image");return e.src=i,e.alt=t??"",e}function L(i){return i?.length?
o("div","looked-at",...i.map(Bs)):null}function Bs({kind:i,src:t,alt:e,html:s,note:n,page:r,title:a,text:h,language:l}){
return i==="image"?Gt(t,e):i==="code"?o("pre","shown-code",...Q(h,l??"")):i==="table"?o("div","html",P(s),n?o("div","dim",
n):null):i==="page"?M(r,a):o("div","dim",h)}function je(i,t){H(i.widget_manager);let e=o("div","root page-of-parts",Me(i.get("html")));e.classList.add("jp-RenderedH\
TMLCommon","jp-RenderedHTML");for(let s of e.querySelectorAll("details"))Ps(s);return t.append(e),()=>e.remove()}function Ps(i){
let[t,e]=i.children;if(!e)return;let s=$("Copy",()=>Rs(e));s.classList.add("adknb-part-copy"),s.setAttribute("aria-label",
`Copy ${t.firstElementChild?.textContent??""}`),t.after(s)}function Rs(i){let t=[...i.querySelectorAll("tbody tr")];return t.
length?t.map(e=>[...e.children].map(({textContent:s})=>s).join("	")).join(`
`):(i.textContent??"").replace(/\n$/,"")}var ht=class{constructor(){this.title="",this.modelName="",this.own_id="",this.box=null,this.seq=0,this.status={status:"\
idle",text:""},this.notice="",this.notices=[],this.usage={text:""},this.earlier=0,this.state=[],this.drawing=null,this.marks=
{},this.offers=[],this.answer=null,this.rows=new Map,this.cards=new Map,this.lanes=new Map,this.artifacts=new Map,this.last=
new Map}load(t){let{rows:e,cards:s,lanes:n,artifacts:r=[],model:a="",...h}=t;Object.assign(this,h,{modelName:a}),this.rows=
new Map(e.map(l=>[l.id,{...l}])),this.lanes=new Map(n.map(l=>[l.id,l])),this.cards=new Map(s.map(l=>[l.id,l])),this.artifacts=
new Map(r.map(l=>[l.id,l])),this.last=new Map;for(let l of e)this.#t(l)}apply(t){let e=t.id??t.event,s=e===void 0?void 0:
this.rows.get(e);qs[t.op]?.(this,t,s),(t.op==="append"||t.op==="text"||t.op==="patch")&&this.#t(this.rows.get(t.id??t.row?.
id))}merged(t){let e=new Map(this.state.map(n=>[n.key,n]));for(let n of t)e.set(n.key,n);let s=[...e.values()].filter(n=>n.
kind||n.value!==null);return[...s.filter(n=>n.kind!=="-"),...s.filter(n=>n.kind==="-")]}abandon(t){this.notice=t;let{status:e}=this.
status;(e==="running"||e==="pending")&&(this.status={status:"cancelled",text:"stale"});for(let s of this.cards.values())
s.state==="asked"&&Object.assign(s,{state:"stale",note:"its kernel is gone"})}#t(t){if(t?.lane)for(let e of this.lanes.keys())
(t.lane===e||t.lane.startsWith(`${e}.`))&&this.last.set(e,t.id)}},qs={append(i,{row:t}){i.rows.set(t.id,{...t});for(let e of i.
rows.keys()){if(i.rows.size<=(i.box?4e3:1e3))break;i.rows.delete(e),i.earlier+=1}},text(i,t,e){e&&(e.text+=t.s,e.streaming=
!0,t.tail!==void 0&&Object.assign(e,{html:e.html+t.html,tail:t.tail}))},patch(i,{op:t,...e},s){s&&Object.assign(s,{streaming:!1,
html:s.html&&s.html+s.tail,tail:""},e)},state(i,t,e){i.state=t.state??i.merged(t.entries),e&&(e.changes=[...e.changes??[],
...t.changes])},card:(i,{card:t})=>{i.cards.set(t.id,t)},status(i,{status:t,text:e="",seconds:s=0}){if(i.status={status:t,
text:e,seconds:s},t!=="running")for(let n of i.rows.values())n.streaming=!1},clear(i){for(let t of[i.rows,i.cards,i.lanes,
i.artifacts,i.last])t.clear();Object.assign(i,{notice:"",usage:{text:""},earlier:0,state:[],drawing:null,marks:{},answer:null})},
box(i,{box:t}){i.box=i.box&&{...i.box,...t}},usage(i,{text:t,title:e="",tokens:s=0}){i.usage={text:t,title:e,tokens:s}},
notice(i,{text:t}){i.notice=t},model(i,{name:t}){i.modelName=t},notices(i,{notices:t}){i.notices=t},drawing(i,{drawing:t}){
i.drawing=t},mark(i,{marks:t}){i.marks={...i.marks,...t}},lane:(i,{lane:t})=>{i.lanes.set(t.id,t)},artifact:(i,{artifact:t})=>{
i.artifacts.set(t.id,t)},offers(i,{what:t}){i.offers=t},answer(i,{answer:t}){i.answer=t}};var Ne={idle:["○","idle"],running:["●","running"],pending:["⚠","waiting for you"],done:["✓","done"],error:["✗",
"error"],cancelled:["■","stopped"]},_e={approved:["✓","You approved"],edited:["✎","You approved with changes"],rejected:[
"✗","You rejected"],answered:["✓","You answered"],reasked:["↻","asked again"],given:["✓","You answered"],refused:[
"✗","You refused"],superseded:["–","no longer asked"],retried:["↻","Retried below"],resent:["✓","Sent below"],dropped:[
"✓","taken back"],over:["–","the conversation went on"],stale:["–","stale"]},tt={now:["●","working"],waits:["⚠",
"waiting for you"],was:["✓","done"],failed:["✗","failed"],stopped:["■","stopped"]},Ie="What waits in a session tha\
t is kept in a file is asked again by %confirm; else run the cell again.",z={"+":"added","~":"changed","-":"removed"};function k(i){
if(i==null)return"";if(i<1e3)return`${Math.round(i)} ms`;let t=i/1e3;return t<60?`${t.toFixed(1)} s`:`${Math.floor(t/60)}\
 min ${Math.round(t%60)} s`}function R(i){let t=Math.floor(i);return t<60?`${t} s`:`${Math.floor(t/60)} min ${t%60} s`}var b=(i,t)=>`${i.
toLocaleString("en")} ${t}${i===1?"":"s"}`;function B(i){if(i<1e3)return b(i,"byte");let[t,e]=i<1e6?[i/1e3,"kB"]:[i/1e6,
"MB"];return`${t.toFixed(t%1?1:0)} ${e}`}function lt(i){return i==null?"nothing":y(JSON.stringify(i))}var Be=i=>i.replace(
/[^ -~]/g,Pe),Pe=i=>`\\u${i.charCodeAt(0).toString(16).padStart(4,"0")}`,Ds=/(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;
function y(i){return i.replace(Ds,(t,e)=>e??t.split("").map(Pe).join(""))}var et=(i,t)=>JSON.stringify(i)===JSON.stringify(
t);function st(i){if(!i.startsWith('"')||!i.includes("\\n"))return i;try{return y(JSON.parse(i))}catch{return i.replace(
/\\n/g,`
`)}}var dt=class extends ht{constructor(t){super(),this.model=t,this.manager=t.widget_manager,this.listed=t.get("panels"),this.
views=new Set,this.sent=new Map,this.panels=new Map,this.needed=new Map,this.ahead=new Map,this.gone=!1,this.statusAt=0,
this.heard=new Map;let e=t.get("snapshot");this.late=e.seq>0,this.load(e),this.statusAt=performance.now(),t.on("change:s\
napshot",()=>this.adopt(t.get("snapshot"))),t.on("msg:custom",s=>this.receive(s)),t.on("comm_live_update",()=>this.send(
{kind:"resync"}))}need(t,e,s){let n=`${t}/${e}`;this.panels.has(n)?s(this.panels.get(n)):this.send({kind:"need",what:t,id:e})&&
this.needed.set(n,s)}adopt(t){if(!(t.seq<=this.seq)){this.load(t),this.statusAt=performance.now(),this.gone=!1,this.#t();
for(let e of this.views)e.reset()}}receive(t){t.kind!=="ops"||t.seq<=this.seq||(this.ahead.set(t.seq,t.ops),this.#t(),this.
ahead.size&&this.send({kind:"resync"}))}#t(){for(let t of this.ahead.keys())t<=this.seq&&this.ahead.delete(t);for(let t=this.
ahead.get(this.seq+1);t;t=this.ahead.get(this.seq+1)){this.seq+=1;for(let e of t)this.#e(e);this.ahead.delete(this.seq)}}#e(t){
this.apply(t),t.op==="status"&&(this.statusAt=performance.now());let e=t.id??t.row?.id;if((t.op==="append"||t.op==="text"||
t.op==="patch")&&this.heard.set(e,performance.now()),t.op==="panel"){let s=t.id?`${t.name}/${t.id}`:t.name;this.panels.set(
s,t.data),this.needed.get(s)?.(t.data),this.needed.delete(s)}for(let s of this.views)s.touch(t)}get seconds(){let{status:t,
seconds:e=0}=this.status;return e+(t==="running"?(performance.now()-this.statusAt)/1e3:0)}silence(t){let e=this.heard.get(
t);return e===void 0?0:(performance.now()-e)/1e3}isOpen(t){return t.state==="asked"&&this.sent.get(t.id)!==t.again}send(t){
try{return this.model.send(t),!0}catch{return this.#i(),!1}}#i(){this.gone=!0,this.abandon(`The kernel that ran this is \
gone. ${Ie}`);for(let t of this.views)t.reset()}approve(t){let e=t.filter(s=>this.isOpen(s));if(!(!e.length||!this.send(
{kind:"approve",ids:e.map(({id:s})=>s)}))){for(let s of e)this.sent.set(s.id,s.again);for(let s of this.views)s.touch({op:"\
card",card:e[0]})}}decide(t,e,s){if(this.isOpen(t)){this.send({kind:"answer",id:t.id,decision:e,...s})&&this.sent.set(t.
id,t.again);for(let n of this.views)n.touch({op:"card",card:t})}}};var Hs=/^[\s\S]*[.!?…:;](?=\s)|^[\s\S]*\n/,Fs=12,ct=class{constructor(t){this.store=t,this.begun=new Map,this.node=o("\
div","hidden"),this.node.setAttribute("aria-live","polite"),this.node.setAttribute("aria-relevant","additions")}touch(t){
if(t.op==="status"&&t.status!=="running")for(let s of[...this.begun.keys()])this.rest(this.store.rows.get(s));let e=this.
store.rows.get(t.id??t.row?.id);e&&(t.op==="append"&&e.kind!=="user"&&!e.streaming?this.whole(e):t.op==="text"?this.sentences(
e):t.op==="patch"&&this.#t(t,e))}#t(t,e){this.begun.has(e.id)?this.rest(e):t.kind==="marker"?this.whole(e):typeof t.ok==
"boolean"&&this.say(`${e.tool} ${t.ok?"is done":"failed"}: ${e.result}`)}whole(t){t.tool!=="transfer_to_agent"&&(t.kind===
"call"?this.say(`${t.author} calls ${t.tool}`):t.text&&this.say(`${t.author}${t.kind==="error"?", error":""}: ${t.text}`))}sentences(t){
let e=this.begun.get(t.id)??0,s=Hs.exec(t.text.slice(e))?.[0];this.begun.set(t.id,e+(s?.length??0)),s&&this.say(e?s:`${t.
author}: ${s}`)}rest(t){if(!t)return;let e=this.begun.get(t.id)??0;this.begun.delete(t.id);let s=t.text.slice(e);s.trim()&&
this.say(e?s:`${t.author}: ${s}`)}say(t){for(this.node.append(o("div","",t.replace(/[*`|]+|^#+ /gm,"").trim().slice(0,500)));this.
node.childElementCount>Fs;)this.node.firstChild?.remove()}};var Ws=8,ut=i=>i.reduce((t,{count:e})=>t+e,0),Vt=({arguments:i})=>i.map(({name:t,text:e})=>`${t}=${e}`).join(", "),pt=class{constructor(t,e){
this.rows=t.alike,this.keys=t.alike.map(({key:d})=>d).join(),this.whole=e,this.changed=()=>{},this.ticks=new Map,this.lines=
new Map;let s=[...new Set(this.rows.flatMap(d=>d.arguments.map(({name:u})=>u)))],n=this.rows.some(({hint:d})=>d);this.all=
this.#t("all",()=>{for(let[d,u]of this.ticks)this.lines.get(d)?.hidden||(u.checked=this.all.checked)});let r=["calls",...s,
...n?["asks"]:[]].map(d=>o("th","",d)),a=this.rows.map(d=>this.#e(d,s,n)),h=o("table","alike",o("thead","",o("tr","",o("\
th","",this.all),...r)));h.append(o("tbody","",...a)),this.count=o("div","dim"),this.count.setAttribute("role","status");
let l=o("div","alike-scroll",h);l.tabIndex=0,l.setAttribute("role","group"),l.setAttribute("aria-label",`calls of ${t.tool}`),
this.node=o("div","",this.rows.length>=Ws?this.#n():null,l,this.count),this.#s()}get total(){return ut(this.rows.filter(
t=>this.ticks.get(t)?.checked))}get ticked(){return this.rows.filter(t=>this.ticks.get(t)?.checked).map(({key:t})=>t)}#t(t,e){
let s=o("input","tick");return s.type="checkbox",s.checked=!0,s.setAttribute("aria-label",t),s.addEventListener("change",
()=>{e(),this.#s()}),s}#e(t,e,s){let n=this.#t(Vt(t),()=>{}),r=e.map(h=>{let l=t.arguments.findIndex(d=>d.name===h);return o(
"td","",l<0?null:this.#i(t,l))}),a=o("tr","",o("td","",n),o("td","count",t.count.toLocaleString("en")),...r);return s&&a.
append(o("td","hint",t.hint)),this.ticks.set(t,n),this.lines.set(t,a),a}#i(t,e){let{name:s,text:n,left_out:r}=t.arguments[e],
a=o("code","",n);if(!r)return a;let h=p(`Show all of ${s}`,"small",()=>{this.whole(l=>{a.textContent=l[t.key][e],h.remove()})});
return o("div","",a," ",h)}#n(){let t=o("input","input");return t.type="search",t.placeholder="search these calls",t.setAttribute(
"aria-label","search these calls"),t.addEventListener("input",()=>{let e=t.value.toLowerCase().split(/\s+/);for(let[s,n]of this.
lines){let r=`${Vt(s)} ${s.hint}`.toLowerCase();n.hidden=!e.every(a=>r.includes(a))}this.#s()}),o("div","alike-search",t)}#s(){
let t=this.rows.filter(r=>!this.lines.get(r)?.hidden),e=this.rows.filter(r=>this.ticks.get(r)?.checked),s=t.filter(r=>this.
ticks.get(r)?.checked).length;this.all.checked=t.length>0&&s===t.length,this.all.indeterminate=s>0&&s<t.length;let n=t.length<
this.rows.length?`; ${t.length} of ${this.rows.length} rows found`:"";f(this.count,`${ut(e).toLocaleString("en")} of ${ut(
this.rows).toLocaleString("en")} calls ticked${n}`),this.changed()}};function Yt({action:i="Approve",alike:t},e=t[0]?.count??
1){return e<2?i:`${i} ${b(e,"call")}`}function Re(i){let t=i.alike.map(e=>{let s=e.count>1?`${e.count.toLocaleString("en")}\
 × `:"";return o("div","",s,o("code","",`${i.tool}(${Vt(e)})`))});return o("div","decided-calls",...t)}function qe(i){return[
`${b(ut(i.alike),"call")} of `,o("code","",i.tool)]}var ft=i=>i?.default??void 0;function j(i,t){let e=/^#\/\$defs\/(.+)$/.exec(i.$ref??"")?.[1],s=e&&t.$defs?.[e];if(s)return{
...j(s,{$defs:{}}),...i,$ref:void 0};if(Array.isArray(i.type)&&i.type.length===2&&i.type.includes("null"))return{...i,type:i.
type.find(h=>h!=="null"),nullable:!0};let{anyOf:n=[],...r}=i,a=n.filter(({type:h})=>h!=="null");return a.length!==1||a.length===
n.length?i:{...j(a[0],t),...r,nullable:!0}}function mt(i,t){if(Array.isArray(i.enum))return"enum";if(typeof t=="string"&&
y(t)!==t)return"json";let e=typeof i.type=="string"?i.type.toLowerCase():"";if(["string","integer","number","boolean"].includes(
e))return e;if(e||i.anyOf||i.$ref)return"json";let s=typeof t;return["string","number","boolean"].includes(s)?s:"json"}function He(i,t,e){
if(!(t==="integer"?/^[+-]?\d+$/:/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i).test(i))return{error:t==="integer"?"a whole num\
ber is needed":"a number is needed"};let n=Number(i);return t==="integer"&&!Number.isSafeInteger(n)?{error:"too large to\
 be sent exactly"}:e.minimum!==void 0&&n<e.minimum?{error:`at least ${e.minimum}`}:e.maximum!==void 0&&n>e.maximum?{error:`\
at most ${e.maximum}`}:{value:n}}function Fe(i){try{return{value:JSON.parse(i)}}catch(t){return{error:`not JSON: ${t instanceof
Error?t.message:t}`}}}var De=i=>i===null?"Nothing":y(typeof i=="string"?i:JSON.stringify(i));function Xt(i,t){let e=j(i,
t),s=e.nullable?[{label:"Nothing",value:null}]:[];if(Object.hasOwn(e,"const"))return[{label:e.title??De(e.const),value:e.
const}];if(Array.isArray(e.enum))return[...e.enum.map(r=>({label:De(r),value:r})),...s];if(e.type==="boolean")return[{label:"\
Yes",value:!0},{label:"No",value:!1},...s];if(e.type==="null")return[{label:"Nothing",value:null}];let n=(e.oneOf??e.anyOf??
[]).map(r=>Xt(r,t));return n.length&&n.every(r=>r!==null)?n.flat():null}var gt=i=>typeof i=="object"&&i!==null&&!Array.isArray(
i);var zs=3;function Ks(i,t,e,s){if(i==="enum")return Js(t,s?e:t.default);if(i==="boolean")return Us((s?e:t.default)===!0);
if(i==="json")return Gs(e,s);let n=Vs(i,t,e),r=()=>!(i==="string"?n.value:n.value.trim());return{node:n,read(){return r()&&
!s&&!t.nullable?{skip:!0}:r()&&t.nullable?i==="string"&&!s?{skip:!0}:{value:null}:i==="string"?{value:n.value}:He(n.value.
trim(),i,t)}}}function Js({enum:i=[]},t){let e=o("select","input",...i.map(s=>o("option","",y(String(s)))));return e.selectedIndex=
i.findIndex(s=>et(s,t)),{node:e,read:()=>e.selectedIndex<0?{skip:!0}:{value:i[e.selectedIndex]}}}function Us(i){let t=o(
"input","check");return t.type="checkbox",t.checked=i,{node:t,read:()=>({value:t.checked})}}function Gs(i,t){let e=o("te\
xtarea","input");return e.value=t?y(JSON.stringify(i,null,2)):"",e.rows=Math.min(8,e.value.split(`
`).length+1),{node:e,read:()=>!t&&!e.value.trim()?{skip:!0}:Fe(e.value)}}function Vs(i,t,e){let n=i==="string"&&typeof e==
"string"&&(e.includes(`
`)||e.length>60)?o("textarea","input"):o("input","input"),r=t.format==="password";return n instanceof HTMLInputElement&&
Object.assign(n,{type:r?"password":"text",spellcheck:!1}),n.autocomplete=r?"new-password":"off",i!=="string"&&(n.inputMode=
i==="integer"?"numeric":"decimal"),n.value=e==null?"":String(e),n instanceof HTMLTextAreaElement&&(n.rows=Math.min(16,Math.
max(2,n.value.split(`
`).length+1))),n}var We=i=>i instanceof HTMLInputElement&&i.type==="checkbox"?i.checked:i.value;function bt(i,t,e,s,{depth:n=0,
within:r="",needed:a}={}){let h=j(t,s),l=e[i]??{};if(h.properties&&n<zs&&gt(l))return Qs(i,h,l,s,n,r);let d=Object.hasOwn(
e,i),u=mt(h,e[i]),{node:c,read:m}=Ks(u,h,e[i],d),w=We(c);c.id=g();let C=n===0&&!Ys(s,i),E=s["x-titles"]?h.title:null,Y=E?
"":` ${Xs(h,u,d,a,C)}`,T=o("label","field-name",E??(C?Be(i):y(i)));T.append(o("span","dim",Y)),T.htmlFor=c.id;let v=o("d\
iv","problem");v.id=`${c.id}-problem`,v.setAttribute("role","alert"),c.setAttribute("aria-describedby",v.id),a&&u!=="boo\
lean"&&c.setAttribute("aria-required","true");let Ft=()=>{let _=We(c)===w?{skip:!0}:m();return v.textContent=_.error?y(`${r}${i}\
: ${_.error}`):"",c.setAttribute("aria-invalid",String(!!_.error)),_.error?{..._,node:c}:_};return{name:i,title:E,box:o(
"div","field",T,c,ze(h),v),node:c,check:Ft}}var Ys=({properties:i,additionalProperties:t},e)=>!i||!!t||Object.hasOwn(i,e),
ze=i=>i.description?o("div","dim",y(i.description)):null;function Xs(i,t,e,s,n){let r={json:"JSON",enum:"one of"}[t]??t,
a=[n?"unknown":"",r,i.nullable&&s!==!1?"or empty":""];return!e&&ft(i)!==void 0?a.push(`default ${lt(i.default)}`):s===!1&&
a.push("optional"),a.filter(Boolean).join(", ")}function Qt(i,t,e,s=0,n=""){let r=i.properties??{},a=[...new Set([...Object.
keys(r),...Object.keys(t)])],h=l=>Object.hasOwn(r,l)?(i.required??[]).includes(l):void 0;return a.map(l=>bt(l,r[l]??{},t,
e,{depth:s,within:n,needed:h(l)}))}function Qs(i,t,e,s,n,r){let a=Qt(t,e,s,n+1,`${r}${i}.`),h=o("fieldset","group",o("le\
gend","field-name",y(i)),ze(t));h.append(...a.map(d=>d.box));let l=()=>{let d=a.map(m=>({part:m.name,...m.check()})),u=d.
find(({error:m})=>m);if(u)return u;let c=d.filter(({skip:m})=>!m).map(({part:m,value:w})=>[m,w]);return c.length?{value:{
...e,...Object.fromEntries(c)}}:{skip:!0}};return{name:i,box:h,node:a[0]?.node,check:l}}function Zt(i,t,e){return et(t,e)?
[]:!gt(t)||!gt(e)?[o("div","",o("b","",y(i)),` ${lt(t)} → ${lt(e)}`)]:[...new Set([...Object.keys(t),...Object.keys(e)])].
flatMap(n=>Zt(`${i}.${n}`,t[n],e[n]))}function Ke(i,t){i.addEventListener("keydown",e=>{e.key!=="Escape"||e.isComposing||
(e.stopPropagation(),t())})}var Zs=12,q=class{constructor(t,e,{label:s="Send",look:n="go",changed:r=s,more:a=[],leave:h=null,values:l=null}={}){this.
send=e,this.label=s,this.changed=r,this.values=l,this.go=p(s,n,()=>this.submit()),this.root=t??{},this.schema=j(this.root,
this.root),this.twin=o("span","twin"),this.problem=o("div","problem"),this.problem.setAttribute("role","alert"),this.difference=
o("div","difference"),this.difference.setAttribute("aria-live","polite"),this.fields=[],this.isObject=!!(l||this.schema.
properties);let d=Xt(this.schema,this.root),u=!l&&d&&d.length>0&&d.length<=Zs?d:null;this.first=void 0,this.node=u?this.#t(
u):this.#e(d,a,h)}#t(t){let e=t.map(({label:s,value:n})=>p(s,"choice",()=>this.send(n)));return this.first=e[0],S(...e,this.
twin)}#e(t,e,s){this.fields=this.isObject?Qt(this.schema,this.values??{},this.root):[this.#n(t)],this.first=this.fields[0]?.
node;let n=this.fields.map(a=>a.box),r=o("div",`form answer${this.values?" edits":""}`,...n,this.values?this.difference:
null,this.problem);return r.append(S(this.go,...e,this.twin)),r.addEventListener("input",()=>this.check()),s&&Ke(r,s),r.
addEventListener("keydown",a=>this.#i(a)),r}#i(t){this.values||t.key!=="Enter"||t.isComposing||t.shiftKey||!(t.target instanceof
Element)||!t.target.matches("input, .adknb-say")||(t.preventDefault(),this.submit())}#n(t){let e=mt(this.schema);return t?
bt("Your answer",{...this.schema,enum:t.map(n=>n.value)},{},this.root):e==="string"||e==="json"&&!["object","array"].includes(
String(this.schema.type))?this.#s():bt(this.schema.title??"Your answer",this.schema,{},this.root)}#s(){let t=o("textarea",
"input say");t.rows=1,t.id=g(),t.value=typeof this.schema.default=="string"?this.schema.default:"",t.addEventListener("i\
nput",()=>{t.rows=Math.min(8,t.value.split(`
`).length)});let e=o("label","field-name",this.schema.title??"Your answer");e.htmlFor=t.id;let s=this.schema.nullable?{value:null}:
{skip:!0},n=()=>t.value.trim()?{value:t.value}:s;return{name:"",node:t,box:o("div","field",e,t),check:n}}check(){this.problem.
textContent="";let t=this.#o(h=>h.check());this.go.disabled=t.some(([,{error:h}])=>h!==void 0);let{values:e}=this;if(!e)
return;let s=this.schema.properties??{},n=h=>Object.hasOwn(e,h)?e[h]:ft(s[h]),a=Object.entries(this.#r(t)??{}).flatMap(([
h,l])=>Zt(h,n(h),l));f(this.difference,...a),this.go.textContent=a.length?this.changed:this.label}#o(t){return this.fields.
map(e=>[e,t(e)])}#r(t){let e=t.filter(([{name:s},{skip:n,error:r,value:a}])=>!n&&!r&&!et(a,this.values?.[s]));return e.length?
this.#a(e):null}submit(){let t=this.#o(a=>this.#l(a)),[e,s]=t.find(([,{error:a}])=>a)??[],[n]=t.find(([a,{skip:h}])=>h&&
this.#h(a))??[],r=n?.name?`${n.title??n.name}: nothing was typed`:"nothing was typed";this.problem.textContent=n&&!e?y(r):
"",e?(s?.node??e.node)?.focus():n?n.node?.focus():this.values?this.send(this.#r(t)):this.send(this.isObject?this.#a(t):t[0][1].
value)}#a(t){return Object.fromEntries(t.filter(([,{skip:e}])=>!e).map(([{name:e},{value:s}])=>[e,s]))}#l(t){let e=t.check();
if(typeof e.value=="string"&&!e.value.trim()&&this.#h(t))return{skip:!0};if(!e.skip||this.values&&!this.#h(t))return e;let s=this.
isObject?j(this.schema.properties?.[t.name]??{},this.root):this.schema;return s.default!==void 0?{value:s.default}:t.node instanceof
HTMLInputElement&&t.node.type==="checkbox"?{value:t.node instanceof HTMLInputElement&&t.node.checked}:e}#h({name:t}){return this.
isObject?this.values&&Object.hasOwn(this.values,t)?!1:!j(this.schema.properties?.[t]??{},this.root).properties&&(this.schema.
required??[]).includes(t):!0}};var Je=.95,wt=class{constructor(t){this.store=t.store,this.view=t,this.seen=new Set,this.watched=new Map,this.watcher=new IntersectionObserver(
e=>this.#t(e),{threshold:Je}),this.button=p("","go",()=>{t.focus.handOn(this.id),this.store.approve(this.cards)}),this.hint=
o("span","dim"),this.hint.setAttribute("role","status"),this.node=o("div","approve-all",S(this.button,this.hint))}get cards(){
return[...this.store.cards.values()].filter(t=>ti(t)&&this.store.isOpen(t))}get id(){return`all/${this.cards.map(({id:t})=>t).
join()}`}paint(t,e){let{cards:s}=this,n=new Map;for(let{id:r}of s){let a=t.get(r);a?.firstElementChild&&n.set(a.firstElementChild,
Ue(r)),a?.lastElementChild&&n.set(a.lastElementChild,Ge(r))}for(let r of this.watched.keys())n.has(r)||this.watcher.unobserve(
r);for(let r of n.keys())this.watched.has(r)||this.watcher.observe(r);if(this.watched=n,this.tell(),s.length<2){this.node.
remove();return}e.lastChild!==this.node&&e.append(this.node),t.set(this.id,this.node)}tell(){let{cards:t}=this,e=t.filter(
({id:n})=>!this.seen.has(Ue(n))||!this.seen.has(Ge(n))).length;this.button.textContent=`Approve all ${t.length}`;let s=t.
some(({id:n})=>this.view.cards.forms.has(n));this.button.disabled=e>0||s,this.hint.textContent=s?"when you have sent or \
left the open form":e?`when you have seen each: ${e} not yet in sight`:""}#t(t){for(let{target:e,intersectionRatio:s}of t){
let n=this.watched.get(e);n&&s>=Je&&this.seen.add(n)}this.tell()}stop(){this.watcher.disconnect()}},Ue=i=>`${i}/head`,Ge=i=>`${i}\
/buttons`;function ti({kind:i,in_doubt:t,changed:e,alike:s}){return i==="approval"&&!t&&!e&&!s.length}var ei={"+":"diff diff-come","-":"diff diff-gone","@":"diff diff-place"},te=/^@@ -(\d+)\S* \+\S+ @@/;function Ve(i){let t=i.
split(`
`);return!te.test(t[0])||t.some(e=>e&&!/^[-+ @]/.test(e))?null:t.filter((e,s)=>s||te.exec(e)?.[1]!=="1").map(e=>o("span",
ei[e[0]]??"diff",e.replace(te,"line $1")||" "))}function Ye(i){let t=/^In\[(\d+)\]/.exec(i)?.[1];if(!t||!document.querySelector(".jp-Notebook"))return o("code","where",
i);let e=p(i,"where",()=>{let n=[...e.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt")??[]].find(a=>a.textContent.
trim()===`[${t}]:`)?.closest(".jp-Cell");n?.scrollIntoView({block:"center"});let r=n?.querySelector(".cm-content");r instanceof
HTMLElement&&r.focus({preventScroll:!0})});return e.title="Go to that cell",e}function ee(i,t){let e=(i??[]).map(({name:s,
text:n,left_out:r,note:a})=>{let h=o("code","",n),l=a?o("span",a==="unknown"?"bad":"dim",` (${a})`):null,d=r&&t?p(`Show \
all of ${s}`,"small",()=>t(h,d??h)):null;return o("span","arg",o("span","dim",`${s} `),h,l,d)});return e.length?o("div",
"arguments",...e):null}function Xe(i){if(!i)return[null,null];let t=o("pre","json trace",i);t.hidden=!0,t.tabIndex=0,t.id=
g(),t.setAttribute("role","group"),t.setAttribute("aria-label","Traceback");let e=p("Show traceback","",()=>{t.hidden=!t.
hidden,e.textContent=t.hidden?"Show traceback":"Hide traceback",e.setAttribute("aria-expanded",String(!t.hidden))});return e.
setAttribute("aria-controls",t.id),e.setAttribute("aria-expanded","false"),[e,t]}function Qe({tool:i,where:t,arguments:e,
sent:s,traceback:n}){let[r,a]=Xe(n),h=o("div","",o("b","bad","✗ Error")," ",o("code","",i)," failed",t?" in ":"");t&&h.
append(Ye(t));let l=o("div","",o("span","dim","sent to the model as "),o("code","",s));return o("div","failure",h,ee(e),
l,r?S(r):null,a)}function Ze(i,t,e){let s=o("div","ask",o("b","bad","✗ Error"),` ${i.title}`),n=s.textContent;if(i.where&&
s.append(" in ",Ye(i.where)),!t)return{head:s,parts:[],spoken:n};let[r,a]=Xe(i.traceback),h=[i.ways.includes("retry")?p(
"Retry","",()=>e("retry")):null,i.ways.includes("drop")?p("Drop turn","",()=>e("drop")):null];return h[0]&&(h[0].title="\
Undo the turn, and send its message again"),h[1]&&(h[1].title="Undo the turn: agents no longer see it"),{head:s,parts:[S(
...h,r),a??""],spoken:n}}function ts(i){if(i.seconds===null||i.seconds===void 0)return{head:o("div","ask",o("span","icon",
"⏳"),` ${i.title}`),parts:[],spoken:i.title};let t=o("span","count"),e=performance.now()+i.seconds*1e3,s=()=>{let r=Math.
ceil((e-performance.now())/1e3);t.textContent=r>0?`asked again in ${r} s`:"asked again now",r>0&&(t.isConnected||!t.dataset.
seen)&&setTimeout(s,250),t.isConnected&&(t.dataset.seen="")};return s(),{head:o("div","ask",o("span","icon","⏳"),` ${i.
title}; `,t,i.hint?o("span","dim",` (${i.hint})`):""),parts:[],spoken:`${i.title}; ${t.textContent}`}}function es(i,t,e,s){let[n,r]=i.texts??[],a=i.ways.includes("send"),h=i.state==="stale",l=t||h?i.title:"Your new message",
d=o("div","ask",o("span","icon",t?"✉":""),` ${l}`),u=(C,E)=>o("div","kept",o("span","dim",C)," ",o("span","kept-text",
E)),c=a?"":u("Waits for your answer:",n),m=u("New:",r),w=[i.ways.includes("refuse")?p("Reject that and send this","repla\
ce",()=>e("refuse")):null,i.ways.includes("first")?p("Answer first","first",s):null,a?p("Send it now","go",()=>e("send")):
null];return{head:d,parts:t?[c,m,S(...w)]:h?[m]:[],spoken:`${i.title}: ${r}`}}function it(i){return i.state!=="asked"&&!K(i)}var se={error:Ze,wait:ts,unsent:es};function K({kind:i}){return i in se}function ss({
kind:i,tool:t,needs:e,in_doubt:s}){return s?["asks whether to call ",o("b","",t)," again, which may have taken effect al\
ready"]:i==="credential"?["calls ",o("b","",t),`, which needs ${e}`]:i==="input"&&!t?["asks"]:["asks to call ",o("b","",
t)]}function is({title:i,text:t},e){let s=i.startsWith("code.py")?Q(t,"python"):Ve(t),n=o("pre","json source",...s??[t]);
n.tabIndex=0,n.setAttribute("role","group"),n.setAttribute("aria-label",i);let r=o("details","document",o("summary","",i),
n);return r.open=e===0,r}function ns(i){if(!/^https?:/i.test(i))return null;let t=o("a","link",`Open ${new URL(i).host}`);
return t.href=i,t.target="_blank",t.rel="noopener noreferrer",o("div","step",t,o("span","dim"," and sign in there, then \
paste the address it leads to:"))}var kt=class{constructor(){this.places=new Map,this.appeared=new Map,this.looking=0,this.onScroll=()=>this.look(),this.focused=
null}watch(t){let e=[...t.values()];for(let s of this.places.keys())e.includes(s)||this.places.delete(s);for(let s of this.
appeared.keys())t.has(s)||this.appeared.delete(s);for(let[s,n]of t)this.appeared.has(s)||this.appeared.set(s,performance.
now()),this.places.has(n)||this.places.set(n,{card:"",buttons:"",changed:0,id:s});t.size?this.looking||(this.looking=window.
setInterval(()=>this.look(),100),document.addEventListener("scroll",this.onScroll,!0)):this.stop(),this.look()}stop(){window.
clearInterval(this.looking),document.removeEventListener("scroll",this.onScroll,!0),this.looking=0}look(){let t=performance.
now();for(let[e,s]of this.places){let n=os(e),r=[...e.querySelectorAll("button")].map(os).join(" ");(n!==s.card||r!==s.buttons)&&
(s.changed=t),s.card=n,s.buttons=r,this.#t(e,t-s.changed<500)}}#t(t,e){let s=document.activeElement;for(let n of t.querySelectorAll(
"fieldset.adknb-buttons"))n instanceof HTMLFieldSetElement&&(e&&s instanceof HTMLElement&&n.contains(s)&&(this.focused=s),
n.disabled=e);e||!this.focused||!t.contains(this.focused)||((!s||s===document.body||s===t)&&this.focused.focus({preventScroll:!0}),
this.focused=null)}focus(t){if(t.focus(),document.activeElement===t)return;this.focused=t;let e=t.closest(".adknb-card");
e instanceof HTMLElement&&e.focus()}handTo(t,e){let s=this.places.get(t);s&&this.appeared.set(s.id,performance.now()),e.
focus()}guard(t){let e=s=>{this.#e(t,s)||(s.preventDefault(),s.stopImmediatePropagation())};t.addEventListener("click",e,
!0),t.addEventListener("keydown",e,!0)}#e(t,e){let n=(e.target instanceof Element?e.target:t).closest("button, a")!==null,
r=e.timeStamp;this.look();let a=this.places.get(t);return a?e instanceof KeyboardEvent?e.key!=="Enter"&&!(e.key===" "&&n)?
!0:!e.repeat&&r-(this.appeared.get(a.id)??0)>=500:!n||r-a.changed>=500:!0}};function os(i){let{left:t,top:e,width:s,height:n}=i.
getBoundingClientRect();return i instanceof HTMLButtonElement?[t,e,s,n].map(Math.round).join():[t,e].map(Math.round).join()}var vt=class{constructor(t,e){this.store=t,this.view=e,this.nodes=new Map,this.forms=new Map,this.tables=new Map,this.steady=
new kt,this.all=new wt(e),this.steady.guard(this.all.node),this.node=o("div","cards"),this.answered=o("div","cards decis\
ions")}paint(){for(let[e,{node:s}]of this.nodes)this.store.cards.has(e)||(s.remove(),this.nodes.delete(e),this.forms.delete(
e),this.tables.delete(e));for(let e of this.store.cards.values())this.#t(e);let t=new Map;for(let[e,{node:s}]of this.nodes){
let n=this.store.cards.get(e);n&&this.store.isOpen(n)&&t.set(e,s)}this.all.paint(t,this.node),this.steady.watch(t)}#t(t){
let e=JSON.stringify([t,this.store.isOpen(t),this.isNext(t)]),s=this.nodes.get(t.id);if(s?.drawn===e)return;let n=s?this.#e(
s.node):null,r=this.card(t),a=it(t)&&!this.store.box?this.answered:this.node;s?.node.parentNode===a?s.node.replaceWith(r):
(s?.node.remove(),a.append(r)),this.nodes.set(t.id,{node:r,drawn:e}),n&&this.#i(t,r,n)}#e(t){let e=document.activeElement;
return[e===document.body||e===t?this.steady.focused:null,e].find(n=>n&&t.contains(n))??null}#i(t,e,s){let n=this.store.isOpen(
t);n||this.view.focus.handOn(t.id);let r=n?this.forms.get(t.id)?.first:null,a=s instanceof HTMLButtonElement?`button.${[
...s.classList].join(".")}`:"input",h=e.contains(s)?s:r??e.querySelector(`${a}:not([disabled])`)??e;h instanceof HTMLElement&&
this.steady.focus(h)}card(t){if(K(t))return this.notice(t);if(it(t))return this.decision(t);let e=this.store.isOpen(t),s=t.
kind==="input",n=o("div","ask",o("span","icon",e?"⚠":""),` ${t.agent} `,...ss(t)),r=this.frame(t,n,e?"alertdialog":"gr\
oup"),a=t.hint?o("div",s?"question":"hint",t.hint):"",h=this.#o(t,e);return r.append(...s?[a,h]:[h,a]),r.append(...(t.remarks??
[]).map(l=>o("div","remark",l))),r.append(...(t.documents??[]).map(is)),e?this.#n(r,t,n.textContent??""):r.append(this.outcome(
t)),r}#n(t,e,s){t.append(e.note?o("div","problem",e.note):""),e.kind==="credential"?this.offerToGive(t,e):e.kind==="inpu\
t"&&!e.tool?this.offerToAnswer(t,e):this.offer(t,e),this.view.liveText.textContent=[s,e.kind==="input"?e.hint:"",e.note].
filter(Boolean).join(" ")}decision(t){let e=(t.arguments??[]).map(({name:h,text:l})=>`${h}=${l}`).join(", "),s=t.tool?o(
"code","",`${t.tool}(${e})`):t.hint?`"${t.hint}"`:"",n=t.agent===this.store.title?null:o("span","dim",` · ${t.agent}`),
r=o("div","ask",this.outcome(t,...t.alike.length?qe(t):[s]),n),a=this.frame(t,r,"group");return t.alike.length&&a.append(
Re(t)),a.classList.add("adknb-decision"),a.title=t.tool&&t.hint?t.hint:"",this.view.liveText.textContent="",a}frame(t,e,s){
let n=o("div","card",e);return e.id=g(),n.dataset.state=t.state,n.dataset.card=t.id,n.dataset.kind=t.kind,n.tabIndex=-1,
n.setAttribute("aria-labelledby",e.id),n.setAttribute("role",s),this.steady.guard(n),n.addEventListener("keydown",r=>this.
onCardKey(r)),n}notice(t){let e=this.store.isOpen(t),s=l=>this.store.decide(t,l,{}),{head:n,parts:r,spoken:a}=se[t.kind](
t,e,s,()=>this.focusNext(t.id)),h=this.frame(t,n,"group");return h.append(...r),e&&t.note&&h.append(o("div","problem",t.
note)),e?this.view.liveText.textContent=a:t.kind==="wait"?h.hidden=!0:(t.state!=="asked"||this.store.sent.has(t.id))&&h.
append(this.outcome(t)),h}outcome({state:t,note:e},...s){let[n,r]=_e[t]??["…","sent; the kernel answers when it is fre\
e"],a=!e||e.startsWith("in [")?e:`: ${e}`;return o("span","outcome",o("b","",`${n} ${r}`),s.some(Boolean)?" ":"",...s,a&&
!a.startsWith(":")?` ${a}`:a)}offer(t,e){let s=o("div","place");t.append(s);let n=this.forms.get(e.id);if(n&&!(e.changed&&
n.values)){s.append(n.node);return}let r=v=>{this.forms.set(e.id,v),f(s,v.node),this.all.tell(),v.first?.focus()},a=()=>this.#s(
e),h=v=>()=>this.leaveForm(e.id,v),l=e.how?o("span","twin","or type: ",o("code","",e.how)):"",d=this.tables.get(e.id),[u,
c]=e.in_doubt?["Call again","Do not call again…"]:[Yt(e,d?.total),"Reject…"],m=p(c,"reject",()=>r(this.reasonForm(e,
a,h("reject")))),w=p(u,"go",()=>this.answer(a(),!0));if(e.changed){s.append(this.offerAfterAChange(e,w,m,l));return}let C=p(
"Edit…","edit",()=>{this.whole(e,v=>r(this.editForm(v,a,h("edit"))))});d&&(d.changed=()=>{w.textContent=Yt(e,d.total),
w.disabled=!d.ticked.length,m.disabled=!d.ticked.length},d.changed());let E=`${u}, and allow the rest of this turn`,Y=p(
E,"all",()=>this.answer(a(),!0,{forTurn:!0})),T=[w,e.kind==="approval"&&!e.alike.length?C:null,m,e.for_turn?Y:null];e.destructive&&
T.reverse(),s.append(S(...T,l))}#s(t){return this.store.cards.get(t.id)??t}leaveForm(t,e){this.forms.delete(t);let s=this.
nodes.get(t);s&&(s.drawn=""),this.paint();let n=this.nodes.get(t)?.node.querySelector(`.adknb-${e}`);n instanceof HTMLElement&&
this.steady.focus(n)}editForm(t,e,s){let n=t.action??"Approve",r=`${n} with these changes`,a={label:`${n} unchanged`,changed:r,
more:[p("Back","back",s)],leave:s,values:t.args};return new q(t.schema,h=>this.answer(e(),!0,{args:h}),a)}reasonForm({kind:t},e,s){
let n={type:"string",title:t==="approval"||t==="doubt"?"reason (optional; the model is told)":"reason (optional)"},r=h=>this.
answer(e(),!1,{reason:h?.reason?.trim()||null}),a={label:"Reject",look:"reject",more:[p("Back","back",s)],leave:s};return new q(
{properties:{reason:n},"x-titles":!0},r,a)}answer(t,e,{args:s=null,reason:n=null,forTurn:r=!1}={}){let a=t.alike.length?
this.tables.get(t.id)?.ticked??[t.alike[0].key]:void 0,h={args:s,reason:n,alike:a,...r&&{for_turn:!0}};t.kind==="approva\
l"||t.kind==="doubt"?this.store.decide(t,e?"approve":"reject",h):this.store.decide(t,"answer",{value:{confirmed:e,...n&&
{reason:n},...a&&{alike:a}}})}whole(t,e){t.args?e(t):this.store.need("call",t.id,e)}showAll(t,e,s){let n=[...e.closest("\
.adknb-arguments")?.children??[]].findIndex(r=>r.contains(e));this.store.need("call",t.id,({texts:r})=>{e.classList.add(
"adknb-whole"),e.tabIndex=0,e.textContent=r[n],s.remove()})}#o(t,e){let s=e?this.#r(t):null;if(s)return s.node;let n=ee(
t.arguments,(a,h)=>this.showAll(t,a,h))??"",[r]=t.alike;return t.alike.length!==1||r.count===1?n:o("div","",n,o("div","r\
emark",`${r.count.toLocaleString("en")} calls with these arguments`))}#r(t){if(t.alike.length<2)return null;let e=this.tables.
get(t.id);if(e?.keys===t.alike.map(({key:n})=>n).join())return e;let s=new pt(t,n=>this.store.need("call",t.id,({alike:r})=>n(
r)));return this.tables.set(t.id,s),s}offerAfterAChange(t,e,s,n){e.disabled=!0;let r=u=>this.store.decide(t,u,{args:null,
reason:null}),a=t.gone?"":p("Re-ask","go",()=>r("reask")),h=t.gone?`Run ${t.version}`:`Run as it was (${t.version})`,l=t.
version?p(h,"edit",()=>r("old")):"",d=o("div","problem",t.changed);return o("div","",d,S(e,a,l,s,n))}offerToGive(t,e){let s=this.#a(
e,()=>{let n=(h,l)=>{this.forms.delete(e.id),this.store.decide(this.#s(e),h,l)},r=p("Refuse","refuse",()=>n("refuse",{})),
a={...e.answer_schema,"x-titles":!0};return new q(a,h=>n("answer",{value:h}),{label:"Continue",more:[r]})});f(s.twin,"or\
 type: ",o("code","",e.how)),t.append(ns(e.link)??"",s.node)}offerToAnswer(t,e){let s=a=>this.store.decide(this.#s(e),"a\
nswer",{value:a}),n=this.#a(e,()=>new q(e.answer_schema,s)),r=this.store.box&&this.isNext(e);f(n.twin,...r?["or type it \
below"]:["or type: ",o("code","",e.how)]),t.append(n.node)}#a(t,e){let s=this.forms.get(t.id)??e();return this.forms.set(
t.id,s),s}isNext(t){return t===[...this.store.cards.values()].find(e=>e.kind==="input"&&this.store.isOpen(e))}focusNext(t){
let e=[...this.store.cards.values()].filter(h=>this.store.isOpen(h)&&!K(h)),s=[...this.store.cards.keys()],n=e.find(h=>s.
indexOf(h.id)>s.indexOf(t))??e[0],r=n&&this.nodes.get(n.id)?.node;if(!r)return!1;let a=this.forms.get(n.id)?.first;return this.
steady.handTo(r,a?.matches("input, textarea")?a:r),r.scrollIntoView({block:"nearest"}),!0}isIn(t,e){return!!this.nodes.get(
t)?.node.contains(e)||this.all.node.contains(e)}stop(){this.steady.stop(),this.all.stop()}onCardKey(t){t.key==="Escape"&&
this.view.leave(),t.stopPropagation()}};var si=200,xt=class{constructor(t,e){this.host=t,this.done=e,this.items=[],this.most=0,this.reading=null,this.known=[],this.
button=p("","small attach",()=>{this.#t()}),this.button.append(ni(),o("span","attach-word","Attach")),this.button.title=
"Files of your computer or of the kernel's folder, variables of the notebook; drop or paste files here",this.button.setAttribute(
"aria-expanded","false"),this.chips=o("div","attached"),this.note=o("div","attach-note bad"),this.note.setAttribute("rol\
e","status"),this.picker=o("input",""),Object.assign(this.picker,{type:"file",multiple:!0,hidden:!0}),this.picker.addEventListener(
"change",()=>{this.addFiles([...this.picker.files??[]]),this.picker.value="",this.close()}),this.own=p("","small attach-\
own",()=>this.picker.click()),this.search=o("input","input attach-search"),this.search.setAttribute("aria-label","Find a\
 file or a variable"),this.search.placeholder="Find a file or a variable",this.search.addEventListener("input",()=>this.#e()),
this.list=o("div","attach-list"),this.panel=o("div","attach-panel",this.own,this.picker,this.search,this.list),this.panel.
id=g(),this.panel.hidden=!0,this.panel.setAttribute("role","group"),this.panel.setAttribute("aria-label","Attach"),this.
button.setAttribute("aria-controls",this.panel.id),this.panel.addEventListener("keydown",s=>this.#o(s)),this.#s()}paint({
attaches:t,gone:e,most:s}){this.takes=t&&!e,this.button.hidden=!this.takes,this.most=s,this.own.textContent=`Choose file\
s of your computer… (${B(s)} a message)`}async#t(){if(!this.panel.hidden){this.close();return}this.panel.hidden=!1,this.
button.setAttribute("aria-expanded","true"),this.search.value="",this.search.focus(),f(this.list,o("div","dim","…")),this.
known=await this.host.attachables(),this.#e()}close(){this.panel.hidden=!0,this.button.setAttribute("aria-expanded","fal\
se"),this.done()}#e(){let t=this.search.value.trim().toLowerCase(),s=this.known.filter(({name:n})=>n.toLowerCase().includes(
t)&&!this.#i(n)).slice(0,si).map(({name:n,kind:r})=>{let a=p("","attach-row",()=>this.add(n));return a.append(o("span","\
attach-name",n),o("span","dim",r)),a});f(this.list,...s.length?s:[o("div","dim attach-none","There is nothing of that na\
me.")])}#i(t){return this.items.some(e=>e.name===t&&e.data===null)}add(t){this.items=[...this.items,{name:t,data:null,bytes:0}],
this.#s(),this.close()}addFiles(t){let e=(this.reading??Promise.resolve()).then(async()=>{await this.#n(t),this.reading===
e&&(this.reading=null)});this.reading=e}async#n(t){let e=[];for(let s of t){let n=this.items.reduce((a,h)=>a+h.bytes,0),
r=n+s.size>this.most?null:await ii(s);r!==null?this.items=[...this.items,{name:s.name,data:r,bytes:s.size}]:s.size>this.
most?e.push(`${s.name} has ${B(s.size)}, a message takes ${B(this.most)}.`):n+s.size>this.most?e.push(`${s.name} is too \
much with the others: a message takes ${B(this.most)}.`):e.push(`${s.name} cannot be read; a folder cannot be attached.`)}
this.#s(e.join(" ")),this.done()}clear(){this.items=[],this.#s()}#s(t=""){this.note.textContent=t;let e=this.items.map(s=>{
let{name:n,data:r,bytes:a}=s,h=p("","attached-chip",()=>{this.items=this.items.filter(d=>d!==s),this.#s(),this.done()}),
l=r===null?null:o("span","dim",B(a));return h.append(o("span","attached-name",n),l??"",o("span","","×")),h.setAttribute(
"aria-label",`Do not attach ${n}`),h});f(this.chips,...e),this.chips.hidden=!e.length}listen(t){let e=s=>this.takes&&s.dataTransfer?.
types.includes("Files");t.addEventListener("dragover",s=>{e(s)&&(s.preventDefault(),s.stopPropagation(),t.toggleAttribute(
"data-drop",!0))}),t.addEventListener("dragleave",s=>{s.relatedTarget instanceof Node&&t.contains(s.relatedTarget)||t.removeAttribute(
"data-drop")}),t.addEventListener("drop",s=>{t.removeAttribute("data-drop"),e(s)&&(s.preventDefault(),s.stopPropagation(),
this.addFiles([...s.dataTransfer?.files??[]]))}),t.addEventListener("paste",s=>{let{clipboardData:n}=s;!this.takes||!n?.
files.length||n.types.includes("text/plain")||(s.preventDefault(),s.stopPropagation(),this.addFiles([...n.files]))})}#o(t){
let e=[...this.list.querySelectorAll("button")],s=e.findIndex(r=>r===document.activeElement),n={ArrowDown:s+1,ArrowUp:s-
1};if(t.key==="Escape")this.close();else if(t.key==="Enter"&&t.target===this.search)e[0]?.click();else if(t.key in n)(e[n[t.
key]]??this.search).focus();else return;t.preventDefault(),t.stopPropagation()}};function ii(i){return new Promise(t=>{let e=new FileReader;
e.onload=()=>t(String(e.result).split(",",2)[1]??""),e.onerror=()=>t(null),e.readAsDataURL(i)})}function ni(){let i=x("s\
vg",{class:"adknb-clip-icon",viewBox:"0 0 16 16","aria-hidden":"true"});return i.append(x("path",{d:"M13.5 7.3 8 12.8a3.\
2 3.2 0 0 1-4.6-4.6l5.8-5.7a2.1 2.1 0 0 1 3 3L6.6 11a1 1 0 0 1-1.5-1.4l5-5"})),i}var yt=class{constructor(t){this.host=t,this.reason="",this.input=o("textarea","input say"),this.input.rows=1,this.input.
id=g(),this.label=o("label","hidden"),this.label.htmlFor=this.input.id,this.hint=o("div","dim hint-line"),this.hint.id=`${this.
input.id}-hint`,this.input.setAttribute("aria-describedby",this.hint.id),this.input.addEventListener("input",()=>this.#t()),
this.attach=new xt(t,()=>this.input.focus()),this.send=p("Send","go send",()=>this.submit()),this.stop=p("Stop","stop",()=>{
t.emit({kind:"stop"}),this.input.focus()});let e=o("div","composer-row",this.attach.button,this.hint,this.stop,this.send),
s=o("div","composer-field",this.attach.chips,this.attach.note,this.label,this.input,e);this.node=o("div","composer",this.
attach.panel,s),s.addEventListener("mousedown",n=>{n.target===s&&(n.preventDefault(),this.input.focus())}),this.input.addEventListener(
"keydown",n=>this.#e(n))}paint(t){this.reason=t.reason,this.label.textContent=`Message to ${t.agent}`,this.input.placeholder=
t.answers?"Your answer":`Message ${t.agent}`,this.input.disabled=t.gone,this.hint.textContent=t.reason||`Enter sends${t.
answers?" your answer":""}, Shift+Enter makes a new line.`,this.hint.toggleAttribute("data-reason",!!t.reason),this.attach.
paint(t),this.stop.hidden=!t.running,this.stop.disabled=t.stopping,this.stop.textContent=t.stopping?"Stopping…":"Stop",
this.send.hidden=t.running&&!!t.reason,this.#t()}#t(){this.send.disabled=!!this.reason||!this.input.value.trim()}submit(){
if(this.attach.reading){this.attach.reading.then(()=>{this.attach.note.textContent||this.submit()});return}let t=this.input.
value;!t.trim()||this.reason||this.host.emit({kind:"send",text:t,attach:this.attach.items})&&(this.attach.clear(),this.input.
value="",this.#t(),this.input.focus())}fill(t){this.input.value=t,this.#t(),this.input.focus();let e=t.indexOf("…");this.
input.setSelectionRange(e<0?t.length:e,e<0?t.length:e+1)}#e(t){t.key!=="Enter"||t.shiftKey||t.isComposing||(t.preventDefault(),
this.submit())}};var rs=i=>i.kind==="call"&&i.result===null&&i.ok===null&&!i.text;function oi(i,t){let e=i.filter(c=>c.kind==="call"),s=t?
e.filter(rs):[];if(s.length)return`calling ${[...new Set(s.map(c=>c.tool))].join(", ")} …`;if(!e.length)return i.some(
c=>c.kind==="thought")?"thought about it":i[0].text;let n=new Set(e.map(c=>c.tool)),[r]=n,a=n.size>1?`used ${b(n.size,"t\
ool")}`:`used ${r}`,h=e.length>n.size?b(e.length,"call"):"",l=e.filter(c=>c.ok===!1).length,d=e.reduce((c,m)=>c+(m.ms??0),
0);return[a,h,l?`${l} failed`:"",d>=10?`${(d/1e3).toFixed(d<100?2:1)} s`:""].filter(Boolean).join(" · ")}var J=class{constructor(t){
this.open=!1,this.steps=[],this.line=o("span","talk-steps-line"),this.arrow=o("span","talk-arrow","▸"),this.arrow.setAttribute(
"aria-hidden","true"),this.button=o("button","talk-steps-button",this.arrow,this.line),this.button.type="button",this.button.
addEventListener("click",()=>t(()=>{this.open=!this.open,this.#t()})),this.body=o("div","talk-steps-body"),this.body.id=
g(),this.button.setAttribute("aria-controls",this.body.id),this.node=o("div","talk-steps",this.button,this.body),this.#t()}paint(t,e){
this.node.hidden=!t.length,t.length&&(this.steps=t,this.line.textContent=oi(t,e),this.node.toggleAttribute("data-running",
e&&t.some(rs)),this.node.toggleAttribute("data-failed",t.some(s=>s.ok===!1)),this.#t())}#t(){this.arrow.textContent=this.
open?"▾":"▸",this.button.setAttribute("aria-expanded",String(this.open)),this.body.hidden=!this.open,this.open&&f(this.
body,...this.steps.map(ri))}};function ri(i){if(i.kind!=="call")return o("div",`talk-step talk-step-${i.kind}`,i.text);let t=i.
ok===!1?o("span","bad","failed"):null,e=k(i.ms),s=o("div","talk-step-call",o("code","",o("b","",i.tool),"(",i.args,")"),
o("span","talk-step-end",t,e?` ${e}`:"")),n=i.result??i.text;return o("div","talk-step",s,n?o("div","talk-step-result",n):
null)}var $t=class{constructor(t,e){this.host=t,this.growing=null,this.drawn="",this.head=o("div","talk-head"),this.text=o("di\
v","talk-text"),this.steps=new J(e),this.node=o("div","talk-part",this.head,this.text,this.steps.node)}paint(t,{model:e,
named:s,running:n}){this.node.dataset.kind=t.kind,this.head.hidden=!s||!t.who,s&&f(this.head,o("b","",t.who),e?o("span",
"talk-model",e):null),this.steps.paint(t.steps,n);let{text:r,html:a,tail:h,streaming:l,pieces:d,pages:u}=t;if(this.text.
hidden=!r&&!a&&!d.length&&!u.length,l&&a!==null){this.#t(t);return}let c=[r.length,a?.length,h.length,d.length,u.length,
l].join();if(this.drawn===c&&!this.growing)return;this.drawn=c,this.growing=null;let m=a===null?o("div","text",r):W(a+h,
null);f(this.text,r||a?m:null,...u.map(w=>M(w)),L(d)),this.#e(m,r,!0)}#t(t){this.growing||(this.growing=new F(null),f(this.
text,this.growing.node)),this.growing.paint(t),this.#e(this.growing.node,t.text,!1)}#e(t,e,s){at(t,e,s);for(let n of t.querySelectorAll(
".adknb-wide:not([tabindex])"))n.setAttribute("tabindex","0"),n.setAttribute("role","group"),n.setAttribute("aria-label",
"Table");this.host.drawn(t)}};var St=class{constructor(t,e){this.host=t,this.unfold=e,this.turn=null,this.parts=new Map,this.opened=null,this.asked=o(
"div","talk-mine"),this.note=o("div","talk-note"),this.question=o("div","talk-question",this.asked,this.note),this.answers=
o("div","talk-parts"),this.thinking=o("div","talk-thinking",o("span",""),o("span",""),o("span","")),this.thinking.setAttribute(
"aria-hidden","true"),this.place=o("div","talk-details"),this.place.hidden=!0,this.copy=$("Copy",()=>this.words),this.retry=
p("Retry","small again",()=>t.emit({kind:"retry",turn:this.turn?.id??""})),this.edit=p("Edit","small again",()=>this.#e()),
this.more=p("Details","small",()=>this.unfold(()=>this.#i())),this.retry.title="Send the message again, in a copy of the\
 conversation that ends before it",this.edit.title="Change the message, and send it in a copy of the conversation that e\
nds before it",this.more.setAttribute("aria-expanded","false"),this.actions=o("div","talk-actions",this.copy,this.retry,
this.edit,this.more),this.node=o("div","talk-turn",this.question,this.answers,this.thinking,this.actions,this.place)}get words(){
return(this.turn?.parts.filter(e=>e.kind==="answer"&&e.text)??[]).map(e=>e.text).join(`

`)}paint(t,e){let s=this.turn;if(this.turn=t,this.node.dataset.turn=t.id,this.question.hidden=!t.asked,t.asked&&s?.asked?.
text!==t.asked.text&&!this.question.querySelector("textarea")){let r=t.asked.who==="you"?null:o("div","talk-head",o("b",
"",t.asked.who)),a=t.asked.attached.map(l=>o("span","attached-chip",l)),h=a.length?o("div","attached",...a):null;f(this.
asked,r,o("div","text",t.asked.text),h,L(t.asked.pieces))}this.note.textContent=t.note,this.note.hidden=!t.note,this.#t(
t,e);let n=t.parts.some(r=>r.streaming);this.thinking.hidden=!t.running||n,this.copy.hidden=!this.words,this.actions.hidden=
t.running||!(this.words||t.repeats||t.detailed)||!t.parts.length,this.retry.hidden=!t.retries,this.edit.hidden=!t.repeats,
this.more.hidden=!t.detailed}#t(t,e){let s=new Set(this.parts.keys()),n="";for(let a of t.parts){s.delete(a.id);let h=this.
parts.get(a.id);h||(h=new $t(this.host,this.unfold),this.parts.set(a.id,h),this.answers.append(h.node));let l=(a.kind===
"answer"||a.kind==="error")&&a.who!==n;h.paint(a,{model:e.models[a.who]??"",named:l,running:t.running}),a.kind!=="note"&&
(n=a.who)}for(let a of s)this.parts.get(a)?.node.remove(),this.parts.delete(a);let r=t.parts.map(a=>this.parts.get(a.id)?.
node);for(let[a,h]of r.entries())h&&this.answers.children[a]!==h&&this.answers.insertBefore(h,this.answers.children[a]??
null)}#e(){if(!this.turn?.asked||this.question.querySelector("textarea"))return;let{id:t,asked:e}=this.turn,s=o("textare\
a","input talk-edit");s.value=e.text,s.setAttribute("aria-label","Your message");let n=()=>{f(this.asked,...a),this.edit.
focus()},r=()=>{s.value.trim()&&this.host.emit({kind:"edit",turn:t,text:s.value})&&n()},a=[...this.asked.childNodes];s.addEventListener(
"keydown",l=>{l.key==="Escape"?(l.stopPropagation(),n()):l.key==="Enter"&&!l.shiftKey&&!l.isComposing&&(l.preventDefault(),
r())});let h=o("div","talk-edit-buttons",p("Cancel","small",n),p("Send","small go",r));f(this.asked,s,h),s.focus(),s.setSelectionRange(
s.value.length,s.value.length)}#i(){this.opened?this.close():(this.opened=this.host.details(this.turn?.id??""),f(this.place,
this.opened?.node)),this.place.hidden=!this.opened,this.opened&&this.place.scrollIntoView({block:"nearest"}),this.more.setAttribute(
"aria-expanded",String(!!this.opened))}close(){this.opened?.close(),this.opened=null,this.place.replaceChildren()}remove(){
this.close(),this.node.remove()}};var ai=40,Ot=class{constructor(t){this.host=t,this.turns=new Map,this.follows=!0,this.empty=o("div","talk-empty"),this.earlier=
o("div","earlier"),this.list=o("div","talk-list"),this.inner=o("div","talk-inner",this.earlier,this.empty,this.list),this.
scroller=o("div","talk",this.inner),this.scroller.tabIndex=0,this.scroller.setAttribute("role","log"),this.scroller.setAttribute(
"aria-live","off"),this.scroller.setAttribute("aria-label","Conversation"),this.scroller.addEventListener("scroll",()=>{
let{scrollHeight:s,scrollTop:n,clientHeight:r}=this.scroller;this.follows=s-n-r<ai,this.down.hidden=this.follows}),this.
down=p("↓","to-end",()=>this.toEnd()),this.down.setAttribute("aria-label","To the newest message"),this.down.hidden=!0,
this.slot=o("div","talk-slot");let e={...t,emit:s=>this.#t(s)};this.composer=new yt(e),this.typing=e,this.sized=new ResizeObserver(
()=>{this.follows&&this.#e()}),this.sized.observe(this.inner),this.sized.observe(this.scroller),this.node=o("div","chat",
o("div","talk-frame",this.scroller,this.down),this.slot,this.composer.node),this.composer.attach.listen(this.node),this.
node.addEventListener("keydown",s=>{s.stopPropagation(),s.key==="Escape"&&t.leave()})}#t(t){return this.host.emit(t)?(this.
composer.input.focus(),!0):!1}toEnd(){this.follows=!0,this.#e(),this.composer.input.focus()}#e(){this.scroller.scrollTop=
this.scroller.scrollHeight,this.down.hidden=!0}paint(t){this.earlier.textContent=t.earlier?`${b(t.earlier,"earlier messa\
ge")} above are not shown`:"",this.#s(t);let e=new Set(this.turns.keys()),s=t.turns.at(-1);for(let n of t.turns)e.delete(
n.id),this.#i(n,t,n===s);for(let n of e)this.turns.get(n)?.remove(),this.turns.delete(n);this.node.toggleAttribute("data\
-gone",t.gone),this.composer.paint(t)}#i(t,e,s){let n=this.turns.get(t.id);n?s&&this.list.lastElementChild!==n.node&&this.
list.append(n.node):(n=new St(this.typing,r=>this.#n(r)),this.turns.set(t.id,n),this.list.append(n.node)),n.turn!==t&&n.
paint(t,e)}#n(t){this.follows=!1,t()}#s({agent:t,description:e,suggestions:s,turns:n,gone:r}){this.empty.hidden=n.length>
0;let a=JSON.stringify([t,e,s]);if(this.empty.hidden||this.empty.dataset.drawn===a)return;this.empty.dataset.drawn=a;let h=s.
map(l=>p(l,"suggestion",()=>this.composer.fill(l)));f(this.empty,o("div","talk-agent",t),e?o("div","dim",e):null,h.length&&
!r?o("div","suggestions",...h):null)}remove(){this.sized.disconnect();for(let t of this.turns.values())t.close()}};var N=i=>i.author==="user"?"you":i.author;function U(i){let t=N(i);return i.kind==="call"?`${t} ${i.tool}(${i.args}) ${i.
result??i.text}`.trim():`${t} ${i.kind==="text"||i.kind==="user"?"":`${i.kind}: `}${i.text.replace(/\s+/g," ")}`}var as=/^(?!.*\/answer\d+$)/,At=class{constructor(t){this.store=t,this.entries=[],this.of=new Map}reset(){this.entries=[],
this.of.clear();for(let t of this.store.rows.values())this.#e(t)}touch(t){t.op==="append"?this.#e(t.row):t.op==="clear"?
this.reset():t.op==="status"||t.op==="card"?this.#t(this.entries.at(-1)):t.id!==void 0&&this.#t(this.of.get(t.id))}#t(t){
t&&(t.turn=null)}#e(t){(t.kind==="user"&&as.test(t.id)||t.id.startsWith("note")||!this.entries.length)&&(this.#t(this.entries.
at(-1)),this.entries.push({rows:[],turn:null}));let s=this.entries[this.entries.length-1];s.rows.push(t.id),s.turn=null,
this.of.set(t.id,s)}isIn(t,e){return this.of.get(e)?.rows[0]===t}take(){let{status:t,earlier:e}=this.store,s=this.entries.
at(-1);e&&(this.entries=this.entries.filter(r=>this.#i(r)));let n=[...this.store.cards.values()].some(r=>this.store.isOpen(
r)&&r.ways?.includes("retry"));for(let r of this.entries){let a=r===s;r.turn??=this.#n(r.rows,a?t.status:"done",a&&n)}return this.
entries.flatMap(({turn:r})=>r?[r]:[])}#i(t){let{rows:e}=this.store;if(e.has(t.rows[0]))return!0;for(let s of t.rows)e.has(
s)||this.of.delete(s);return t.rows=t.rows.filter(s=>e.has(s)),t.turn=null,t.rows.length>0}#n(t,e,s){let n=t.map(c=>this.
store.rows.get(c)).filter(c=>c!==void 0),r=n[0],a=r?.kind==="user"&&as.test(r.id),h=e==="running",l=li(a?n.slice(1):n,h);
e==="cancelled"&&l.push(G(`${t[0]}/stopped`,"note","","Stopped."));let d=!/^(refused|note)/.test(t[0]),u=a&&(!d||this.store.
box?.forks===!0);return{id:t[0],asked:a?hi(r):null,parts:l,running:h,note:"",repeats:u,retries:u&&!s,detailed:d}}},hs=/\n\[attached: ([^\n]*)\]\n\[[^\n\]]*\](?=\n|$)/g;
function hi(i){let t=[...i.text.matchAll(hs)].map(([,e])=>e);return{who:N(i),text:i.text.replace(hs,"").trim(),attached:t,
pieces:i.shown??[]}}function G(i,t,e,s){return{id:i,kind:t,who:e,text:s,html:null,tail:"",streaming:!1,steps:[],pieces:[],
pages:[]}}function li(i,t){let e=new ie;for(let s of i)s.kind==="user"&&e.isQuestion?e.mine(s):ne(s)||s.kind==="user"?e.
step(s):s.kind==="sources"?e.sources(s):s.kind==="marker"?e.parts.push(G(s.id,"note","",s.text)):s.kind==="error"?e.error(
s):(s.text||s.streaming||s.shown?.length)&&e.answer(s);return e.end(N(i[i.length-1]??{author:""}),t),e.parts}var ie=class{constructor(){
this.parts=[],this.question="",this.first="",this.steps=[],this.pieces=[]}#t(){this.first="",this.steps=[],this.pieces=[]}get#e(){
return this.parts.findLast(t=>t.kind==="answer")}step(t){this.first||=t.id,this.steps.push(oe(t)),this.pieces.push(...t.
shown??[])}sources({html:t,pages:e}){let s=this.#e;s&&(s.html=`${s.html??""}${t??""}`,s.pages=[...s.pages,...e??[]])}get isQuestion(){
return this.parts.length>0&&this.parts.at(-1)?.id===this.question}mine(t){this.parts.push(G(t.id,"mine",N(t),t.text))}error(t){
this.parts.push({...G(t.id,"error",N(t),t.text),steps:this.steps}),this.#t()}answer(t){let{id:e,text:s,html:n,tail:r,streaming:a,
pages:h}=t,l={html:n,tail:r,streaming:a,steps:this.steps,pieces:ls([...this.pieces,...t.shown??[]])};t.kind==="question"&&
(this.question=this.first||e),this.parts.push({...G(this.first||e,"answer",N(t),s),...l,pages:h??[]}),this.#t()}end(t,e){
let{steps:s,pieces:n,first:r}=this;if(!s.length)return;let a=this.#e;!e&&a&&!s.some(h=>h.kind==="call")?a.steps=[...a.steps,
...s]:this.parts.push({...G(r,"answer",t,""),steps:s,pieces:ls(n)})}};function ne({kind:i,author:t}){return i==="call"||
i==="thought"||i==="marker"&&t!=="notebook"}function oe({id:i,kind:t,text:e,tool:s,args:n,result:r,ok:a,ms:h}){return{id:i,
kind:t==="call"||t==="thought"?t:"note",text:e,tool:s??"",args:n??"",result:r,ok:a,ms:h}}function ls(i){let t=new Set;return i.
filter(({kind:e,src:s,html:n,page:r,text:a})=>{let h=JSON.stringify([e,s,n,r,a]);return!t.has(h)&&t.add(h)})}var re=2e3;function D(i,t="",e=!0){if(i===null||typeof i!="object")return o("div","leaf",ae(t),di(i));let s=Array.isArray(
i)?i.map((d,u)=>[String(u),d]):Object.entries(i),[n,r]=Array.isArray(i)?"[]":"{}";if(!s.length)return o("div","leaf",ae(
t),o("span","dim",n+r));let a=`${s.length} ${s.length===1?"entry":"entries"}`,h=o("details","branch",o("summary","",ae(t),
o("span","dim",`${n} ${a} ${r}`))),l=()=>{h.childElementCount===1&&h.append(o("div","twigs",...s.map(([d,u])=>D(u,d,!1))))};
return h.addEventListener("toggle",()=>h.open&&l()),e&&l(),h.open=e,h}function ae(i){return i===""?null:o("span","name",
`${i}: `)}function di(i){let t=typeof i=="string"?i:JSON.stringify(i),e=o("span",typeof i=="string"?"string":"atom",t.slice(
0,re));if(t.length<=re)return e;let s=p(`… ${(t.length-re).toLocaleString("en")} more`,"small",()=>{e.textContent=t,s.
remove()});return o("span","",e," ",s)}var Et=class{constructor(t){this.store=t,this.node=o("div","state"),this.node.setAttribute("role","group"),this.node.setAttribute(
"aria-label","State"),this.node.tabIndex=0}paint(){let{state:t,cards:e}=this.store,s=t.some(a=>a.kind),n=[...e.values()].
some(a=>a.kind!=="wait"&&this.store.isOpen(a));if(this.node.hidden=!t.length||n&&!s,this.node.hidden)return;let r=o("div",
"pane-head","State",s?o("span","dim",this.store.box?" · changes since it began":" · changes this turn"):null);f(this.node,
r,...t.map(a=>he(a.key,a.kind,a.old,a.value)))}};function he(i,t,e,s){let[n,r]=[e,s].map(d=>st(d??"")),a=t==="~"?`${n} →\
 ${r}`:t==="-"?n:r,h=o("span","mark",t||" "),l=o("div","entry",h,o("span","key",i),o("span","value",a));return l.dataset.
mark=t||"",z[t]&&h.append(o("span","hidden",` ${z[t]}`)),l}var Ct=class{constructor(t){this.store=t}exists(t){return!!(t.failure||t.detail||t.changes?.length||this.store.offers.includes(
"event"))}request(t){this.store.offers.includes("event")&&this.store.send({kind:"need",what:"event",id:t.id})}node(t){let e=(t.
changes??[]).map(n=>he(n.key,n.kind,n.old,n.new)),s=this.store.panels.get(`event/${t.id}`);return o("div","detail",t.failure?
Qe(t.failure):null,e.length?o("div","changes",o("div","dim","state changed by this event"),...e):null,...s?this.eventParts(
t,s):[t.detail&&!t.failure?o("pre","json",t.detail):null])}eventParts(t,e){let s=$("Copy JSON",()=>e.map(r=>JSON.stringify(
r,null,2)).join(`
`)),n=this.store.offers.includes("rerun")&&!this.store.gone&&this.store.status.status!=="running"?p("Rerun from here","s\
mall",()=>this.store.send({kind:"rerun",event:t.id.split("/")[0]})):null;return n&&(n.title="Ask again with the session \
as it was before this event; this conversation is kept"),[o("div","detail-buttons",s,n),...e.map((r,a)=>D(r,e.length>1?`\
event ${a+1}`:"event",a===e.length-1))]}};var le=3,Lt=class{constructor(t,e){this.store=t,this.view=e,this.chosen=null,this.drawn=null,this.steps=new J(s=>s()),this.
words=o("div","summary"),this.node=o("div","over",this.words),this.copy=$("Copy",()=>this.source),this.copy.classList.add(
"adknb-quiet"),this.button=p("","small fold",()=>{this.chosen=!this.folded,this.folded||e.events.toTop(),e.stale=!0,e.paint()})}get isOver(){
let{answer:t,status:e,box:s}=this.store;return!s&&t!==null&&e.status==="done"}get folded(){let t=[...this.store.cards.values()].
filter(e=>this.store.isOpen(e));return!this.isOver||t.some(({kind:e})=>e!=="unsent")?!1:this.chosen??!0}paint(){let{answer:t,
usage:e}=this.store;if(this.button.hidden=!this.isOver,this.button.textContent=`${this.folded?"▸":"▾"} ${this.line}`,
this.copy.hidden=!this.folded||!this.source,this.button.title=e.text,this.button.setAttribute("aria-expanded",String(!this.
folded)),t&&this.folded&&this.drawn!==t){this.drawn=t;let s=[this.question(t),...this.members(t),this.answer(t)].filter(
a=>a!==null),n=[...this.store.rows.values()].filter(ne).map(oe),r=s.length>0&&n.some(a=>a.kind==="call");f(this.words,...s,
this.failures(),r?this.steps.node:null),this.steps.paint(n,!1)}this.#t(),this.node.hidden=!this.folded||!(this.words.hasChildNodes()||
this.hasGraph)}get hasGraph(){return this.folded&&this.store.drawing?.kind==="workflow"}#t(){let{picture:t}=this.view;this.
node.toggleAttribute("data-graph",this.hasGraph),this.hasGraph&&t.node.parentNode!==this.node&&this.node.prepend(t.node)}failures(){
let t=[...this.store.rows.values()].filter(({kind:s,ok:n})=>s==="call"&&n===!1);if(!t.length)return null;let e=t.slice(-le).
map(({tool:s,args:n,result:r})=>`✗ ${s}(${n??""}) → ${r}`);return t.length>le&&e.unshift(`${t.length-le} more failed\
, see the events`),o("ul","failed-calls",...e.map(s=>o("li","",s)))}get source(){return[...this.store.rows.values()].findLast(
t=>t.kind==="text"&&t.text)?.text??""}get line(){let{rows:t,earlier:e,status:s,usage:n}=this.store;return["Details",[...t.
values()].some(a=>a.kind==="call")?"":b(t.size+e,"event"),s.seconds?ci(s.seconds):"",n.tokens?b(n.tokens,"token"):""].filter(
Boolean).join(" · ")}question({question:t}){return!t||de(nt(this.store.manager,this.store.own_id),t)?null:o("div","aske\
d talk-question",o("div","talk-mine",Kt(o("div","text",t))))}members({members:t=[]}){return t.map(({who:e,text:s})=>o("d\
iv","member",o("span","author",e),o("div","text",s)))}answer({who:t,decisions:e="",html:s,pages:n,shown:r}){let a=[...this.
store.cards.values()].some(it),h=W(a?s:e+s,this.store.manager),l=L(r);if(h.append(...(n??[]).map(u=>M(u)),...l?[l]:[]),!h.
hasChildNodes())return null;at(h,this.source,!0);let d=t===this.store.title?null:o("div","talk-head",o("b","author",t));
return o("div","answered",d,o("div","talk-text",Kt(h)))}},ci=i=>i<60?`${Math.max(i,.1).toFixed(1)} s`:R(i);function de(i,t){
let e=s=>s.replace(/\s+/g," ").trim();return e(t)!==""&&e(i).includes(e(t))}var ui=3,V=class{constructor(t,e,s=()=>!0){this.store=t,this.view=e,this.includes=s,this.nodes=new Map,this.open=new Set,
this.dirty=new Set,this.selected=null,this.reading=!1,this.longest=0,this.words="",this.source=void 0,this.details=new Ct(
t),this.earlier=o("div","earlier"),this.node=o("div","log",this.earlier),this.node.setAttribute("role","log"),this.node.
setAttribute("aria-live","off"),this.node.setAttribute("aria-label","Events"),this.node.addEventListener("keydown",n=>this.
onKey(n)),this.node.addEventListener("click",n=>this.onClick(n))}reset(){for(let t of this.store.rows.keys())this.mark(t)}touch(t){
let e=t.id??t.row?.id;(t.failure??t.row?.failure)&&this.open.add(e),t.op==="append"||t.op==="text"?this.dirty.add(e):t.op===
"patch"?this.#t(t):t.op==="state"?this.mark(t.event):t.op==="panel"&&t.name==="event"?this.reread(t.id):t.op==="offers"?
this.reset():t.op==="status"&&this.#e()}#t(t){this.mark(t.id);let e=this.store.rows.get(t.id);e&&this.open.has(t.id)&&!t.
failure&&this.details.request(e)}#e(){for(let[t,{text:e,growing:s,waits:n}]of this.nodes)(e||s||n)&&this.mark(t);this.narrow(
this.words)}reread(t){this.reading=!0,this.mark(t)}mark(t){let e=this.nodes.get(t);e&&Object.assign(e,{text:null,growing:null}),
this.dirty.add(t)}paint(){let{node:t,store:e}=this,s=!this.reading&&t.scrollHeight-t.scrollTop-t.clientHeight<24;this.reading=
!1;for(let r of this.dirty)this.includes(r)&&this.paintRow(e.rows.get(r),r);this.dirty.clear(),this.forget(),t.toggleAttribute(
"data-long",this.nodes.size>50),this.earlier.textContent=e.earlier?`${e.earlier} earlier rows`:"",this.nodes.has(this.selected??
"")||this.#i();let n=s&&(e.box||e.status.status!=="done");return()=>{n&&(t.scrollTop=t.scrollHeight)}}#i(){let t=[...this.
nodes].find(([,{node:e}])=>!e.hidden);this.select(t?.[0]??null,!1)}forget(){if(this.nodes.size!==this.store.rows.size)for(let[
t,{node:e}]of this.nodes)this.store.rows.has(t)||(e.remove(),this.nodes.delete(t),this.open.delete(t))}paintRow(t,e){if(!t)
return;let s=this.nodes.get(e);if(s&&t.streaming&&this.#s(s,t))return;let n=s?.node??o("div","row");this.#n(n,t);let r=o(
"div","what"),a=t.streaming&&Ut(t)?new F(this.store.manager):null,h=a?null:this.fill(r,t);a&&r.append(a.node),a?.paint(t);
let l=this.details.exists(t)?this.disclosure(t):o("span","more"),d=this.numbers(t);f(n,l,this.author(t,s),r,d,this.detail(
t)),s||this.node.append(n);let u=t.kind==="call"&&t.result===null&&t.ok===null;this.nodes.set(e,{node:n,growing:a,text:t.
streaming?h:null,length:t.text.length,ms:d,waits:u})}#n(t,e){t.dataset.id=e.id,t.dataset.kind=e.kind,e.lane&&(t.dataset.
lane=String(this.view.lanes.color(e.lane))),t.tabIndex=e.id===this.selected?0:-1,t.setAttribute("aria-busy",String(!!e.streaming)),
t.hidden=!this.fits(e)||this.#o(e)}#s(t,e){if(t.growing)t.growing.paint(e);else if(t.text)t.text.appendData(e.text.slice(
t.length)),t.length=e.text.length;else return!1;return t.ms.textContent="",!0}tick(){for(let[t,{ms:e,waits:s}]of this.nodes){
let n=this.store.rows.get(t);if(!n||!(s||n.streaming))continue;let r=this.store.silence(t);s&&r>=1?e.textContent=R(r):n.
streaming&&(e.textContent=r>=ui?`no text for ${R(r)}`:"")}}author(t,e){let s=N(t),n=o("span","author",s),r=e?e.node.previousElementSibling:
this.node.lastElementChild;return n.toggleAttribute("data-again",r?.querySelector(".adknb-author")?.textContent===s),n.title=
s,s.length>this.longest&&(this.longest=s.length,this.node.style.setProperty("--adknb-author-letters",String(s.length))),
n}numbers(t){let e=o("span","ms",k(t.ms));return t.usage&&(e.append(o("div","tokens",t.kind==="call"?`asked with ${t.usage.
text}`:t.usage.text)),e.title=t.usage.title),e}fill(t,e){if(e.kind==="call")return this.fillCall(t,e),null;if(e.kind==="\
error"&&t.append(o("span","label bad","✗ ")),e.kind==="thought"&&t.append(o("span","label dim","thought ")),Ut(e)){let n=W(
e.html+(e.tail??""),this.store.manager);return t.append(n,...(e.pages??[]).map(r=>M(r))),t.append(L(e.shown)??""),null}let s=document.
createTextNode(e.text);return t.append(o("span","text",s)),e.streaming&&t.append(o("span","caret","▌")),t.append(L(e.shown)??
""),s}fillCall(t,e){if(t.append(o("span","icon","⚙")," ",o("span","call",e.tool,"(",o("wbr",""),o("span","args",e.args),
")")),e.text&&t.append(" ",o("span","text",e.text)),e.result===null&&e.ok===null){this.store.status.status==="running"&&
t.append(" ",o("span","dim","…"));return}let s=e.ok===!1?o("span","bad","✗ failed"):e.ok?o("span","good","✓"):null;
t.append(" ",s??"→"," ",o("span","result",e.result),L(e.shown)??"")}disclosure(t){let e=this.open.has(t.id),s=o("butto\
n","more",e?"▾":"▸");return s.type="button",s.tabIndex=-1,s.setAttribute("aria-expanded",String(e)),s.setAttribute("\
aria-label","details"),s}detail(t){return this.open.has(t.id)?this.details.node(t):null}toggle(t,e=!this.open.has(t)){let s=this.
store.rows.get(t);!s||!this.details.exists(s)||(e?this.open.add(t):this.open.delete(t),e&&this.details.request(s),this.reread(
t),this.view.schedule())}narrow(t){this.words=t.trim().toLowerCase();for(let[e,{node:s}]of this.nodes){let n=this.store.
rows.get(e);s.hidden=!n||!this.fits(n)||this.#o(n)}this.view.schedule()}fits(t){return!this.words||U(t).toLowerCase().includes(
this.words)}matches(){return[...this.store.rows.values()].filter(t=>this.fits(t))}#o(t){return t.kind!=="user"||t.author!==
"user"||this.store.box||!["running","pending"].includes(this.store.status.status)?!1:(this.source??=nt(this.store.manager,
this.store.own_id),de(this.source,t.text))}toTop(){this.node.scrollTop=0}reveal(t){let e=[...this.nodes.keys()].findLast(
s=>s===t||s.startsWith(`${t}/`));e&&(this.select(e),this.toggle(e,!0),this.nodes.get(e)?.node.scrollIntoView({block:"nea\
rest"}))}select(t,e=!0){let s=this.nodes.get(this.selected??"")?.node;s&&(s.tabIndex=-1),this.selected=t;let n=this.nodes.
get(t??"")?.node;n&&(n.tabIndex=0,e&&n.focus())}onClick(t){let{target:e}=t;if(!(e instanceof Element)||e.closest("a"))return;
let s=e.closest(".adknb-row");if(!(s instanceof HTMLElement)||!s.dataset.id)return;this.select(s.dataset.id,!!e.closest(
".adknb-more"));let n=e.closest(".adknb-detail");(e.closest("button")?!n:!n&&!String(getSelection()))&&this.toggle(s.dataset.
id)}onKey(t){if(!(t.ctrlKey||t.metaKey||t.altKey||t.shiftKey)){if(["Enter"," "].includes(t.key)&&t.target instanceof Element&&
t.target.closest("a, .adknb-detail")){t.stopPropagation();return}!this.#r(t.key)&&!this.#a(t.key)||(t.preventDefault(),t.
stopPropagation())}}#r(t){let e=[...this.nodes].filter(([,{node:r}])=>!r.hidden).map(([r])=>r),s=e.indexOf(this.selected??
""),n={ArrowUp:s-1,ArrowDown:s+1,Home:0,End:e.length-1};return t in n?(this.select(e[Math.min(e.length-1,Math.max(0,n[t]))]??
null),!0):!1}#a(t){if(t==="Escape")this.view.leave();else if(this.selected)if(t==="Enter")this.toggle(this.selected);else if(t===
"ArrowRight")this.toggle(this.selected,!0);else if(t==="ArrowLeft")this.toggle(this.selected,!1);else return!1;else return!1;
return!0}};var pi=400,ds=15e5,Tt=class{constructor(t,e){this.store=t,this.view=e,this.turns=new At(t),this.opened=new Map,this.sent=
null,this.waiting=0,this.chat=new Ot({emit:n=>this.#e(n),details:n=>this.#o(n),attachables:()=>this.#r(),drawn:n=>Z(n,t.
manager),leave:()=>e.leave()}),this.node=this.chat.node,this.chosen=o("select","session"),this.chosen.id=g(),this.chosen.
addEventListener("change",()=>{t.send({kind:"session",name:this.chosen.value}),this.field.focus()});let s=o("label","hid\
den","Session");s.htmlFor=this.chosen.id,this.fresh=p("New","small",()=>{t.send({kind:"session",name:""}),this.field.focus()}),
this.fresh.title="A new session",this.panels=p("Panels","small",()=>e.showPanels(!e.panelsShown)),this.panels.title="Eve\
nts, state and the other panels of this conversation",this.head=o("span","box-head",s,this.chosen,this.fresh,this.panels)}reset(){
this.turns.reset();for(let t of this.opened.values())t.reset();(this.store.rows.size||this.store.gone)&&this.#s()}touch(t){
this.turns.touch(t);for(let e of this.opened.values())e.touch(t);t.op==="append"&&t.row.kind==="user"&&this.#s()}paint(){
let{box:t}=this.store,{current:e="",names:s=[]}=t?.sessions??{},n=JSON.stringify([e,s]);this.chosen.dataset.drawn!==n&&(f(
this.chosen,...s.map(r=>new Option(r,r,!1,r===e))),this.chosen.dataset.drawn=n),this.chosen.value=e,this.chosen.disabled=
this.fresh.disabled=this.isBusy||this.store.gone,this.chosen.hidden=this.fresh.hidden=!s.length,this.panels.setAttribute(
"aria-pressed",String(this.view.panelsShown)),this.chat.paint(this.talk);for(let r of this.opened.values())r.paint()()}tick(){
for(let t of this.opened.values())t.tick()}get field(){return this.chat.composer.input}get isBusy(){return this.sent!==null||
this.store.status.status==="running"}get talk(){let{store:t}=this,e=this.turns.take(),{agent:s=t.title,description:n="",
models:r={},suggestions:a=[],attaches:h=!1,most:l=0}=t.box??{};return{agent:s,description:n,models:r,turns:this.sent?[...e,
this.#t(this.sent)]:e,earlier:t.earlier?t.earlier:0,suggestions:a,running:t.status.status==="running",stopping:this.view.
stopping,reason:this.reason,answers:[...t.cards.values()].some(d=>d.kind==="input"&&t.isOpen(d)),gone:t.gone,attaches:h,
most:l}}#t({text:t,attached:e,note:s}){let n=this.store.box?.waiting?`waiting for ${this.store.box.waiting}`:s;return{id:"\
sent",asked:{who:"you",text:t,attached:e,pieces:[]},parts:[],running:!n,note:n,repeats:!1,retries:!1,detailed:!1}}get reason(){
let{status:t,cards:e,box:s,gone:n}=this.store;return n?"The kernel is gone: run the cell again.":[...e.values()].some(r=>this.
store.isOpen(r)&&!this.isTypedHere(r))?"Answer the card above first.":this.sent?"Sent; the kernel answers when it is fre\
e.":t.status==="running"&&!s?.elsewhere?"Wait for the answer, or stop it.":""}isTypedHere(t){return K(t)||t.kind==="inpu\
t"&&!t.tool}#e(t){if(t.kind==="stop")return this.view.stopNow(),!0;if(this.reason)return!1;if(t.kind==="send")return this.#n(
{kind:"ask",text:t.text,attach:this.#i(t.attach)},t.text,t.attach);let e=this.turns.take().find(r=>r.id===t.turn),s=t.kind===
"edit"?t.text:e?.asked?.text??"";if(t.turn.startsWith("refused"))return this.#n({kind:"ask",text:s,attach:[]},s);let n=t.
turn.split("/")[0];return this.#n({kind:"again",event:n,text:t.kind==="edit"?s:null},s)}#i(t){return t.map(({name:e,data:s})=>{
if(s===null)return e;let n=g();for(let r=0;(r===0||r<s.length)&&this.store.send({kind:"file",id:n,data:s.slice(r,r+ds)});r+=
ds);return{name:e,file:n}})}#n(t,e,s=[]){return this.store.send(t)?(this.sent={text:e,attached:s.map(({name:n})=>n),note:""},
this.chat.follows=!0,this.waiting=window.setTimeout(()=>{if(!this.sent)return;let n=ye(this.store.manager);this.sent={...this.
sent,note:n?`waiting for ${n}`:""},this.view.repaint()},pi),this.view.repaint(),!0):!1}#s(){clearTimeout(this.waiting),this.
sent=null}#o(t){let e=new V(this.store,this.view,s=>this.turns.isIn(t,s));return this.opened.set(t,e),e.reset(),e.paint(),
{node:e.node,close:()=>{this.opened.delete(t)}}}#r(){let t=g();return new Promise(e=>{this.store.need("attachables",t,e)})}remove(){
clearTimeout(this.waiting),this.chat.remove()}};var Mt=class{constructor(t){this.view=t,this.answered=null,this.last=null,this.moved=!1;for(let e of[t.root,t.summary.node])
e.tabIndex=-1;t.box.addEventListener("focusin",({target:e})=>{this.last=e instanceof HTMLElement?e:null}),t.box.addEventListener(
"focusout",({relatedTarget:e})=>{e instanceof Node&&!t.box.contains(e)&&(this.last=null)})}handOn(t){this.answered=t}paint(){
if(this.answered===null)return;let{root:t,summary:e,cards:s,chatBox:n,store:r}=this.view,a=document.activeElement;if(!(!a||
a===document.body||a===t||s.isIn(this.answered,a))||s.focusNext(this.answered)){this.answered=null;return}let l=n?.field??
(e.folded?e.node:t);l.focus({preventScroll:!0}),(l!==t||fi.includes(r.status.status))&&(this.answered=null)}restore(){!this.
moved||!this.view.box.isConnected||(this.moved=!1,document.activeElement===document.body&&this.last?.focus({preventScroll:!0}))}},
fi=["done","error","cancelled"];var jt=class{constructor(t){this.view=t,t.root.addEventListener("keydown",e=>this.onKey(e),!0),t.root.setAttribute("aria\
-keyshortcuts","/ s w Escape")}onKey(t){t.ctrlKey||t.metaKey||t.altKey||t.isComposing||t.target instanceof Element&&(t.target.
closest("input, textarea, select, [contenteditable], .adknb-form")||this.handle(t.key)&&(t.preventDefault(),t.stopPropagation()))}handle(t){
let{tabs:e,tools:s}=this.view;if(t==="Escape")return this.view.leave(),!0;let n={"/":"events",s:"state",w:"waterfall"}[t],
r=e.panels.find(a=>a.name===n&&a.exists);return!r||!this.view.store.rows.size?!1:(this.view.unfold(),e.select(r,t!=="/"),
this.view.paint(),t==="/"&&s.filter.focus(),!0)}};var Nt=class{constructor(t){this.store=t,this.nodes=new Map,this.node=o("ul","lanes"),this.node.setAttribute("aria-label",
"Working at once"),this.node.tabIndex=0}paint(){let{lanes:t,last:e,rows:s}=this.store;if(this.node.hidden=t.size<2,!this.
node.hidden)for(let n of t.values()){let r=this.words(s.get(e.get(n.id)??"")),a=`${n.state} ${r}`,h=this.nodes.get(n.id);
if(h?.drawn===a)continue;let[l,d]=tt[n.state]??["",""],u=o("span","stands",o("span","icon",l),` ${d}`),c=o("li","lane",u,
o("span","author",n.label),o("span","words",r));c.dataset.mark=n.state,c.dataset.lane=String(this.color(n.id)),h?h.node.
replaceWith(c):this.node.append(c),this.nodes.set(n.id,{node:c,drawn:a})}}words(t){return t?t.kind==="call"?`⚙ ${t.tool}\
(${t.args}) ${t.result??t.text}`:t.text.trim().split(`
`).pop():""}color(t){return[...this.store.lanes.keys()].indexOf(t)%4}};var _t=class{constructor(t,e){this.store=t,this.view=e,this.filter=o("input","input filter"),this.filter.type="search",this.
filter.placeholder="filter",this.filter.setAttribute("aria-label","Filter the events"),this.filter.addEventListener("inp\
ut",()=>e.events.narrow(this.filter.value)),this.filter.addEventListener("keydown",s=>{s.stopPropagation(),s.key==="Esca\
pe"&&(this.filter.value||e.leave(),this.filter.value="",e.events.narrow(""))}),this.count=o("span","dim found"),this.count.
setAttribute("role","status"),this.copy=$("Copy",()=>e.events.matches().map(U).join(`
`)),this.copy.title="Copy the log, as it is shown",this.save=p("⤓","small",()=>this.download()),this.save.title="Downl\
oad the events as JSON lines",this.save.setAttribute("aria-label",this.save.title),this.node=o("div","log-tools",this.count,
this.filter,this.copy,this.save)}paint(t,e){this.node.hidden=e||this.view.tabs.current!==this.view.log||!this.store.rows.
size,this.count.textContent=t===null?"":`${t} of ${this.store.rows.size}`}download(){this.waits=this.store.offers.includes(
"log")&&this.store.send({kind:"need",what:"log"}),this.waits||this.keep([...this.store.rows.values()].map(t=>JSON.stringify(
t)).join(`
`))}touch(t){t.op!=="panel"||t.name!=="log"||!this.waits||(this.waits=!1,this.keep(t.data))}keep(t){rt("events.jsonl","a\
pplication/jsonl",`${t}
`)}};var It=class{constructor(t){this.store=t,this.toggled=new Set,this.chips=o("span","chips"),this.node=o("div","notice"),this.
node.id=g(),this.node.setAttribute("role","note"),this.painted="[]"}paint(){let{notice:t,notices:e}=this.store,s=e.filter(
a=>this.#t(a)),n=[t,...s.map(({label:a,text:h})=>a?`${a}: ${h}`:h)].filter(Boolean);this.node.textContent=n.join(`
`),this.node.hidden=!n.length;let r=e.filter(({label:a})=>a);JSON.stringify(r)!==this.painted&&(this.painted=JSON.stringify(
r),this.chips.replaceChildren(...r.map(a=>this.#e(a))))}#t({label:t,folded:e}){return e===this.toggled.has(t)}#e(t){let{
label:e,text:s}=t,n=o("button","chip notice-chip",e);n.type="button",n.title=s,n.setAttribute("aria-controls",this.node.
id);let r=()=>n.setAttribute("aria-expanded",String(this.#t(t)));return n.addEventListener("click",()=>{this.toggled.delete(
e)||this.toggled.add(e),r(),this.paint()}),r(),n}};var us=new Map;function O(i){us.set(i.name,i)}function ps({name:i,title:t,module:e}){return e?{name:i,title:t,mount:(s,n)=>new ce(
i,mi(e),s,n)}:us.get(i)??null}var cs=new Map;function mi(i){let t=cs.get(i);if(t)return t;let e=URL.createObjectURL(new Blob(
[i],{type:"text/javascript"})),s=import(e).finally(()=>URL.revokeObjectURL(e));return cs.set(i,s),s}var ce=class{constructor(t,e,s,n){
this.root=s,this.view=fs(t,n),this.render=void 0,e.then(r=>{this.render=r.default.render,n.repaint()},r=>f(s,o("div","pr\
oblem",`This panel could not be loaded: ${r}`)))}paint(t){t!==void 0&&this.render?.(this.root,t,this.view)}};function fs(i,t){
let{store:e}=t;return{need:s=>new Promise(n=>{e.need(i,s,n)}),showEvent:s=>t.showEvent(s),get status(){return e.status.status}}}
var Bt=class{constructor(t,e){this.panel=t,this.view=e,this.name=t.name,this.title=t.title,this.node=o("div",t.look??`pa\
nel ${t.name}`),this.node.tabIndex=0,this.request=new ue(e.store,t.asks??t.name),this.part=t.mount?.(this.node,e)??{paint:s=>t.
render?.(this.node,s,fs(t.name,e))}}get exists(){return this.panel.exists?.(this.view.store)??this.view.store.offers.includes(
this.name)}get isOffered(){let{offers:t,gone:e}=this.view.store;return this.panel.asks!==null&&!e&&t.includes(this.name)}opened(){
this.isOffered&&this.request.now(),this.part.opened?.()}touch(t){this.isOffered&&(this.panel.refresh??["append","patch",
"status"]).includes(t.op)&&this.request.soon(),this.part.touch?.(t)}closed(){this.request.cancel(),this.part.closed?.()}paint(){
try{this.part.paint(this.request.data)}catch(t){f(this.node,o("div","problem",`This panel failed: ${t}`))}}},ue=class{constructor(t,e){
this.store=t,this.what=e,this.sent=0,this.timer=0}get data(){return this.store.panels.get(this.what)}now(){this.cancel(),
this.sent=performance.now(),this.store.send({kind:"need",what:this.what})}soon(){this.timer||=window.setTimeout(()=>this.
now(),Math.max(0,this.sent+1e3-performance.now()))}cancel(){clearTimeout(this.timer),this.timer=0}};var gi=new Set(["rect","path","text"]),bi=new Set("x y width height rx d fill fill-opacity stroke stroke-opacity stroke-\
dasharray text-anchor font-size font-weight".split(" "));function wi({width:i,height:t,shapes:e}){let s=x("svg",{width:i,
height:t,viewBox:`0 0 ${i} ${t}`});s.style.minWidth=`${Math.round(i*.65)}px`;for(let{tag:n,at:r,text:a,key:h}of e){if(!gi.
has(n))continue;let l=x(n,Object.fromEntries(Object.entries(r).filter(([d])=>bi.has(d))));l.dataset.key=h,l.textContent=
a,s.append(l)}return s}var Pt=class{constructor(t){this.store=t,this.drawn=null,this.node=o("div","picture"),this.node.setAttribute(
"role","img"),this.node.tabIndex=0}followPath(){let t=this.node.getBoundingClientRect(),e=this.node.querySelector("rect:\
is([data-mark=now], [data-mark=waits]):not([fill=none])");if(!e)return;let s=e.getBoundingClientRect();(s.top<t.top||s.bottom>
t.bottom)&&(this.node.scrollTop+=(s.top+s.bottom-t.top-t.bottom)/2),(s.left<t.left||s.right>t.right)&&(this.node.scrollLeft+=
(s.left+s.right-t.left-t.right)/2)}paint(){let{drawing:t,marks:e}=this.store;if(this.node.hidden=!t,!!t){this.drawn!==t&&
(this.drawn=t,f(this.node,wi(t)));for(let s of this.node.querySelectorAll("svg > *"))s instanceof SVGElement&&this.#t(s,
e);this.node.setAttribute("aria-label",[t.title,...this.stateTexts()].join("; ")),this.followPath()}}#t(t,e){let{key:s=""}=t.
dataset,n=e[s.replace(/^s:/,"n:")]??"";(t.dataset.mark??"")!==n&&(t.dataset.mark=n,s.startsWith("s:")?t.textContent=tt[n]?.[0]??
"":s.startsWith("c:")&&(t.textContent=n))}stateTexts(){let{drawing:t,marks:e}=this.store,s=(t?.shapes??[]).filter(({at:n,
key:r})=>n["font-weight"]&&r.startsWith("n:"));return Object.entries(tt).flatMap(([n,[,r]])=>{let a=s.filter(({key:h})=>n!==
"was"&&e[h]===n).map(({text:h})=>h);return a.length?[`${r}: ${[...new Set(a)].join(", ")}`]:[]})}};var Rt=class{constructor(t,e){this.panels=t,this.view=e,this.current=t[0],this.node=o("div","tabs"),this.node.setAttribute(
"role","tablist"),this.node.setAttribute("aria-label","Panels"),this.tabs=new Map(t.map(s=>[s,this.tab(s)])),this.node.append(
...this.tabs.values()),this.node.addEventListener("keydown",s=>this.onKey(s))}tab(t){let e=o("button","tab",t.title);return e.
type="button",e.id=g(),e.setAttribute("role","tab"),e.addEventListener("click",()=>this.select(t)),t.node.id=g(),t.node.
setAttribute("role","tabpanel"),t.node.setAttribute("aria-labelledby",e.id),e.setAttribute("aria-controls",t.node.id),e}select(t,e=!1){
this.current!==t&&this.current.closed(),this.current=t,this.paint(),t.opened(),t.paint(),this.view.schedule(),e&&this.tabs.
get(t)?.focus()}paint(){let t=this.panels.filter(e=>e.exists);t.includes(this.current)||(this.current=this.panels[0]);for(let[
e,s]of this.tabs)s.hidden=!t.includes(e),s.setAttribute("aria-selected",String(e===this.current)),s.tabIndex=e===this.current?
0:-1,e.node.hidden=e!==this.current;this.node.hidden=t.length<2}onKey(t){if(t.ctrlKey||t.metaKey||t.altKey||t.shiftKey)return;
let e=this.panels.filter(r=>this.tabs.get(r)?.hidden===!1),s=e.indexOf(this.current),n={ArrowLeft:s-1+e.length,ArrowRight:s+
1,Home:0,End:e.length-1};if(t.key in n)this.select(e[n[t.key]%e.length],!0);else if(t.key==="Escape")this.view.leave();else if(t.
key!=="Enter"&&t.key!==" ")return;t.key!=="Enter"&&t.key!==" "&&t.preventDefault(),t.stopPropagation()}};var qt=class{constructor(t,e,s){this.store=t,this.missed=new ot(t,s),this.frame=0,this.stale=!0,this.stopping=!1,this.placed=
!1,this.title=o("span","title"),this.model=o("span","model dim"),this.status=o("span","status"),this.stop=p("Stop","stop",
()=>this.stopNow()),this.notice=new It(t),this.lanes=new Nt(t),this.picture=new Pt(t),this.events=new V(t,this),this.state=
new Et(t),this.cards=new vt(t,this),this.foot=o("div","foot"),this.liveText=o("div","hidden"),this.liveText.setAttribute(
"role","status");let n=t.listed.map(ps).filter(r=>r!==null);this.tabs=new Rt(n.map(r=>new Bt(r,this)),this),this.log=this.
tabs.panels[0],this.tools=new _t(t,this),this.summary=new Lt(t,this),this.bar=o("div","bar",this.summary.copy,this.summary.
button,this.tabs.node,this.tools.node),this.panelsShown=!t.box,this.chatBox=t.box?new Tt(t,this):null,this.announcer=new ct(
t),this.root=this.#t(),this.keys=new jt(this),this.box=o("div","root",this.root),this.focus=new Mt(this),this.ticking=window.
setInterval(()=>this.#i(),1e3),e.append(this.box),this.reset()}#t(){let t=o("div","head",this.title,this.model,this.notice.
chips,o("span","gap"),this.status,this.chatBox?this.chatBox.head:this.stop);for(let h of[t,this.bar])h.addEventListener(
"keydown",l=>l.stopPropagation());let e=this.tabs.panels.map(({node:h})=>h),{answered:s,node:n}=this.cards,r=[s,this.summary.
node,this.bar,this.lanes.node,...e,this.chatBox?.node??n,this.foot];this.chatBox?.chat.slot.append(n);let a=o("div","vie\
w",t,this.notice.node,...r,this.liveText,this.announcer.node);return this.store.box&&(a.dataset.box="",a.style.setProperty(
"--adknb-height",`${this.store.box.height}px`)),a}reset(){this.events.reset(),this.chatBox?.reset(),this.missed.ask(),this.
stale=!0,this.schedule()}touch(t){this.events.touch(t),this.announcer.touch(t),this.missed.touch(t),t.op==="status"&&(this.
stopping=!1),this.chatBox?.touch(t),t.op==="panel"&&(this.stale=!0);for(let e of[this.tabs.current,this.tools])e.touch?.(
t);(this.log.node.hidden||t.op!=="append"&&t.op!=="text")&&(this.stale=!0),this.schedule()}schedule(){this.frame||=requestAnimationFrame(
()=>{this.frame=0,this.paint()})}paint(){this.placed||=this.box.isConnected,this.focus.restore();let t=this.panelsShown?
this.events.paint():()=>{};this.lanes.paint(),this.stale?this.paintFrame():this.chatBox?.paint(),this.stale=!1,this.lanes.
node.hidden||=this.summary.folded||!this.panelsShown,this.tools.paint(this.events.words?this.events.matches().length:null,
this.summary.folded),t()}paintFrame(){let{store:t}=this;this.title.textContent=t.title,this.model.textContent=t.modelName,
this.model.hidden=!t.modelName,this.root.dataset.status=t.status.status,this.#e(),this.notice.paint(),this.summary.paint(),
this.tabs.paint();let{folded:e}=this.summary;this.foot.textContent=t.usage.text,this.foot.title=t.usage.title??"";let s=e||
!this.panelsShown;this.foot.hidden=!t.usage.text||s;let n=!(t.rows.size||t.state.length||t.drawing);if(this.bar.hidden=n||
!this.panelsShown,this.bar.toggleAttribute("data-folded",e),s||n)for(let r of this.tabs.panels)r.node.hidden=!0;this.tabs.
node.hidden||=e,this.picture.paint(),this.state.paint(),!s&&!n&&this.tabs.current.paint(),this.cards.paint(),this.chatBox?.
paint(),this.focus.paint()}#e(){let{status:t,box:e,rows:s,seconds:n}=this.store,[r,a]=Ne[t.status]??["",t.status],h=t.status===
"running",l=e?0:[...s.values()].filter(c=>c.kind==="call"&&c.ok===!1).length,d=h&&n>=1?o("span","elapsed",` · ${R(n)}`):
null,u=l?`, ${b(l,"tool")} failed`:"";f(this.status,o("span","icon",r),` ${t.text||a}${u}`,d),this.root.toggleAttribute(
"data-failed",l>0),this.stop.hidden=!h,this.stop.disabled=this.stopping,this.stop.textContent=this.stopping?"Stopping…":
"Stop"}#i(){this.store.status.status!=="running"||!this.box.isConnected||(this.#e(),this.events.tick(),this.chatBox?.tick())}stopNow(){
this.stopping=!0,this.store.send({kind:"stop"}),this.repaint()}showPanels(t){this.panelsShown=t,this.root.toggleAttribute(
"data-panels",t),this.repaint()}repaint(){this.stale=!0,this.schedule()}showEvent(t){this.panelsShown||this.showPanels(!0),
this.tabs.select(this.log),this.events.reveal(t)}unfold(){this.summary.chosen=!1,this.stale=!0,this.paint()}leave(){let t=this.
box.closest(".jp-Cell");document.activeElement instanceof HTMLElement&&document.activeElement.blur(),t instanceof HTMLElement&&
t.focus({preventScroll:!0})}get isOrphan(){return this.placed&&!this.box.isConnected&&!this.box.closest(".jp-OutputArea")}moveTo(t){
t.append(this.box),this.focus.moved=!0,this.reset()}remove(){cancelAnimationFrame(this.frame),clearInterval(this.ticking),
this.cards.stop(),this.chatBox?.remove();for(let t of this.tabs.panels)t.closed();this.store.views.delete(this),this.box.
remove()}};O({name:"events",title:"Events",look:"panes",asks:null,exists:()=>!0,mount(i,t){return i.removeAttribute("tabindex"),i.append(
t.picture.node,t.events.node,t.state.node),{paint(){t.picture.node.parentNode!==i&&t.events.node.before(t.picture.node)}}}});var pe=400,Dt=22,Ht={agent:["▸","agent"],model:["◆","model"],tool:["⚙","tool"],person:["⚠","person"]},fe=class{constructor(t,e){
this.root=t,this.view=e,this.data=[],this.bars=[],this.picture=o("div","bars"),this.table=o("details","twin-table",o("su\
mmary","","As a table")),this.table.addEventListener("toggle",()=>this.paintTable()),t.append(this.picture,this.table),this.
drawn="",new ResizeObserver(()=>this.paint(this.data)).observe(t)}paint(t=[]){this.data=t;let e=this.root.clientWidth-24,
s=`${e} ${JSON.stringify(t)}`;if(this.root.hidden||e<=0||s===this.drawn)return;this.drawn=s,this.bars=t.slice(-pe);let n=t.
length>pe?o("div","dim",`${t.length-pe} earlier bars`):null;t.length?f(this.picture,n,this.draw(this.bars,e)):f(this.picture,
o("div","dim","Nothing has been timed yet.")),this.table.hidden=!t.length,this.paintTable()}draw(t,e){let s=Math.max(1,...t.
map(c=>Math.max(c.begin,c.end??0))),n=Math.min(...t.map(c=>c.begin))>=s?0:Math.min(...t.map(c=>c.begin)),r=Math.min(230,
Math.round(e*.34)),a=e-r-62,h=c=>r+(c-n)/(s-n||1)*a,l=t.length*Dt+22,d=x("svg",{width:e,height:l,viewBox:`0 0 ${e} ${l}`,
role:"img"});d.setAttribute("aria-label",`${t.length} bars over ${k(s-n)}; the table below says the same`);let u=c=>s-n<
1e3?k(c):`${(c/1e3).toFixed(1)} s`;for(let c of ki(n,s,Math.max(2,Math.floor(a/90))))d.append(x("path",{class:"adknb-gri\
d",d:`M${h(c)} 16V${l}`})),d.append(x("text",{class:"adknb-tick",x:h(c),y:11,"text-anchor":"middle"},u(c-n)));return d.append(
...t.map((c,m)=>this.bar(c,20+m*Dt,h,s,r,e))),d}bar(t,e,s,n,r,a){let[h,l]=[s(t.begin),Math.max(s(t.end??n),s(t.begin)+2)],
d=x("g",{class:"adknb-bar","data-kind":t.kind});t.error&&d.setAttribute("data-mark","failed");let u=4+Math.min(t.depth,8)*
12,c=Math.floor((r-u-8)/6.6),m=`${t.error?"✗":Ht[t.kind]?.[0]??""} ${t.name}`;d.append(x("title",{},vi(t))),d.append(x(
"rect",{class:"adknb-hit",x:0,y:e,width:a,height:Dt})),d.append(x("text",{x:u,y:e+15},m.length>c?`${m.slice(0,Math.max(1,
c-1))}…`:m));let w=t.kind==="agent"?6:12,C=(v,Ft,_)=>x("rect",{class:`adknb-${_}`,x:v,y:e+(Dt-w)/2,width:Math.max(1,Ft-
v),height:w,rx:2}),E=t.first===null?null:s(t.first);E===null?d.append(C(h,l,t.kind==="model"?"waits":"work")):d.append(C(
h,E,"waits"),C(E,l,"work"));let Y=t.end===null?"…":k(t.end-t.begin);d.append(x("text",{class:"adknb-taken",x:l+5,y:e+15},
Y));let{event:T}=t;return T&&d.addEventListener("click",()=>this.view.showEvent(T)),d}paintTable(){if(!this.table.open)return;
let t=o("tr","",...["what","name","of","begins","first piece","takes"].map(s=>o("th","",s))),e=this.bars.map(s=>o("tr","",
...[s.error?`${Ht[s.kind]?.[1]} ✗ ${s.error}`:Ht[s.kind]?.[1]??s.kind,s.name,s.agent,k(s.begin)||"0",s.first===null?"":
k(s.first-s.begin),s.end===null?ms(s):k(s.end-s.begin)].map(n=>o("td","",n))));this.table.querySelector("table")?.remove(),
this.table.append(o("table","table",o("thead","",t),o("tbody","",...e)))}};function ki(i,t,e){let s=(t-i)/e,n=10**Math.floor(
Math.log10(s||1)),r=[1,2,5,10].map(h=>h*n).find(h=>h>=.8*s)??s,a=Math.max(r,t-i<1e3?1:100);return Array.from({length:Math.
floor((t-i)/a)+1},(h,l)=>i+l*a)}function ms(i){return i.kind==="person"?"still waits":"still at work"}function vi(i){let t=i.
end===null?ms(i):`took ${k(i.end-i.begin)}`,e=i.first===null?"":`, first piece after ${k(i.first-i.begin)}`,s=`${Ht[i.kind]?.[1]??
i.kind} ${i.name}: began at ${k(i.begin)||"0 ms"}, ${t}${e}`;return i.error?`${s}; ${i.error}`:s}O({name:"waterfall",title:"\
Waterfall",mount:(i,t)=>new fe(i,t)});var xi={user:"of this user",app:"of all",temp:"of this turn"},me=class{constructor(t,e){this.store=e.store,this.whole=void 0,
this.editing=null,this.sent=null,this.drawn=null,this.choices="",this.against=o("select","input"),this.against.setAttribute(
"aria-label","Compare with"),this.against.addEventListener("change",()=>this.paint(this.whole)),this.against.addEventListener(
"keydown",s=>s.stopPropagation()),this.add=p("Add a key","small",()=>this.edit("")),this.problem=o("div","problem"),this.
problem.setAttribute("role","alert"),this.rows=o("div","keys"),this.head=o("div","panel-head",this.against,this.add,this.
problem),t.append(this.head,this.rows)}get mayEdit(){return this.store.offers.includes("state")&&!this.store.gone}closed(){
this.edit(null)}touch(t){t.op!=="panel"||t.name!=="refused"||t.id!==this.sent||(this.problem.textContent=t.data,t.data||
this.edit(null))}edit(t){this.editing=t,this.sent=null,this.problem.textContent="",this.drawn=null,this.head.append(this.
problem),t!==null&&this.paint(this.whole)}paint(t){this.whole=t;let e=[...this.store.rows.values()].filter(u=>u.changes?.
length).slice(-100),s=[["",this.store.box?"changes since it began":"changes this turn"],...e.map(u=>[u.id,`changes by: ${U(
u).slice(0,70)}`])],n=JSON.stringify(s);if(n!==this.choices){let u=this.against.value;this.choices=n,f(this.against,...s.
map(([c,m])=>Object.assign(o("option","",m),{value:c}))),this.against.value=s.some(([c])=>c===u)?u:""}this.add.hidden=!this.
mayEdit;let r=this.store.rows.get(this.against.value),a=r?(r.changes??[]).map(u=>({...u,value:u.new})):this.store.state,
h=JSON.stringify([a,this.editing,this.mayEdit,t]);if(h===this.drawn||this.editing!==null&&this.drawn)return;this.drawn=h;
let l=this.editing===""?this.form("",""):null;f(this.rows,l,...a.map(u=>this.row(u,!r)));let d=this.rows.querySelector("\
input, textarea");d instanceof HTMLElement&&d.focus()}row(t,e){let{key:s,kind:n}=t,r=n==="-",a=e&&!r?this.whole?.find(m=>m.
key===s)?.json:void 0;if(s===this.editing&&e)return this.form(s,a??"");let[h,l]=$i(s),d=o("span","chip",h);d.title=xi[h]??
"of this session",d.dataset.scope=h;let u=o("span","mark",n||" ",z[n]?o("span","hidden",z[n]):null),c=o("div","key-row",
u,d,o("div","key-name",l),yi(t,a));return c.dataset.mark=n,e&&!r&&h!=="temp"&&this.mayEdit&&c.append(this.buttons(s)),c}buttons(t){
let e=p("Edit","small",()=>this.edit(t));e.setAttribute("aria-label",`Edit ${t}`);let s=p("Delete","small",()=>this.send(
{kind:"state",key:t,text:null}));return s.setAttribute("aria-label",`Delete ${t}`),o("div","key-buttons",e,s)}form(t,e){
let s=t?null:this.input("Key","name, user:name or app:name",""),n=this.input("Value","JSON, or else text",e),r=()=>this.
send({kind:"state",key:t||(s?.value.trim()??""),text:n.value}),a=()=>{this.edit(null),this.paint(this.whole)},h=o("div",
"key-form",t?o("b","",t):s,n,p("Save","go small",r),p("Cancel","small",a),this.problem);return h.addEventListener("keydo\
wn",l=>{l.stopPropagation(),l.key==="Escape"?a():l.key==="Enter"&&!l.shiftKey&&!l.isComposing&&!(l.target instanceof HTMLButtonElement)&&
(l.preventDefault(),r())}),h}input(t,e,s){let n=o(s.includes(`
`)?"textarea":"input","input");return n.value=s,n.placeholder=e,n.setAttribute("aria-label",`${t} (${e})`),n}send(t){this.
sent=t.key,this.problem.textContent=t.key?"":"the key has no name",t.key&&this.store.send(t)}};function yi({kind:i,old:t,
value:e},s){let n=i==="-",r=i==="~"||n?o("div","was",o("span","hidden","was "),st(t??"")):null;return o("div","values",r,
n?null:o("div","value",st(s??e??"")))}function $i(i){let t=i.indexOf(":");return t<0?["session",i]:[i.slice(0,t),i.slice(
t+1)]}O({name:"state",title:"State",look:"panel state-table",refresh:["state"],exists:i=>i.state.length>0,mount:(i,t)=>new me(
i,t)});O({name:"graph",title:"Graph",asks:null,exists:i=>!!i.drawing,mount(i,t){let e=o("div","dim standing");return i.removeAttribute(
"tabindex"),i.append(e),{paint(){t.picture.node.parentNode!==i&&e.before(t.picture.node),e.textContent=t.picture.stateTexts().
join(" · ")}}}});var be=class{constructor(t,e){this.store=e.store,this.calls=[],this.chosen=null,this.drawn=null,this.labels="",this.which=
o("select","input"),this.which.setAttribute("aria-label","Model call"),this.which.addEventListener("change",()=>{this.chosen=
Number(this.which.value),this.want(),this.paint(this.calls)}),this.which.addEventListener("keydown",s=>s.stopPropagation()),
this.body=o("div","prompt-body"),t.append(o("div","prompt-head",this.which),this.body)}touch(t){t.op!=="panel"||t.name!==
"prompts"||(this.calls=t.data,this.want())}get at(){let t=this.calls.length-1;return this.chosen===null?t:Math.min(this.
chosen,t)}want(){this.at>=0&&this.store.send({kind:"need",what:"prompt",id:String(this.at)})}paint(t=[]){this.calls=t;let e=t.
map(({agent:r,model:a,ms:h,tokens:l},d)=>[`${d+1} of ${t.length}`,r,a,l?b(l,"token"):"",k(h)].filter(Boolean).join(" · "));
this.labels!==e.join(`
`)&&(this.labels=e.join(`
`),f(this.which,...e.map((r,a)=>Object.assign(o("option","",r),{value:String(a)})))),this.which.hidden=!t.length,t.length&&
(this.which.value=String(this.at));let s=this.store.panels.get(`prompt/${this.at}`),n=JSON.stringify([t.length,s]);n!==this.
drawn&&(this.drawn=n,t.length?s?f(this.body,...this.call(s)):f(this.body,o("div","dim","…")):f(this.body,o("div","dim",
"No model has been asked yet.")))}call(t){let e=Object.entries(t.tokens).map(([r,a])=>`${Number(a).toLocaleString("en")}\
 ${r}`).join(", "),s=[k(t.ms),t.first_ms===null?"":`first piece after ${k(t.first_ms)}`],n=[t.model,e&&`tokens: ${e}`,...s].
filter(Boolean).join(" · ");return[o("div","dim facts",n),t.error?o("div","problem",`✗ ${t.error}`):null,o("div","par\
ts",...Si(t).map(Li)),Oi(t)]}};function Si(i){let{same:t}=i,e=ke(i.system),s=new Map(i.system.filter(({source:d})=>d).map(
Ei)),n=i.history.slice(t.history),r=b(i.messages,"message"),a=Object.keys(i.settings??{}).length,h=i.raw?ge(i.raw):"";return[
e&&{title:"System instruction",size:b(e.length,"character"),text:()=>e,content:()=>[o("div","sent",...i.system.flatMap(we))],
open:e.length<=Ai&&!t.call},s.size&&{title:"Inserted values",size:b(s.size,"value"),text:()=>[...s].map(([d,u])=>`${d}	${u}`).
join(`
`),content:()=>[...s].map(([d,u])=>o("div","sent",`${d} → `,...we({text:u,source:d})))},i.tools.length&&{title:"Tools",
size:String(i.tools.length),text:()=>ge(i.tools),content:()=>i.tools.map(Ti)},a&&{title:"Settings",size:String(a),text:()=>ge(
i.settings),content:()=>[D(i.settings)]},n.length&&{title:"History",size:t.messages?`${i.messages-t.messages} new of ${r}`:
r,text:()=>gs(n),content:()=>bs(n)},i.answer.length&&{title:"Answer",size:Ci(i.answer),text:()=>gs(i.answer),content:()=>bs(
i.answer),open:!0},h&&{title:"Raw response",size:b(h.length,"character"),text:()=>h,content:()=>[D(i.raw)]}].map(d=>d||null).
flatMap(d=>d&&!t.parts.includes(d.title.toLowerCase())?[d]:[])}function Oi({same:i,system:t,tools:e,settings:s}){let n={
"system instruction":t.length,tools:e.length,settings:Object.keys(s??{}).length},r=Object.entries(n).flatMap(([a,h])=>h&&
i.parts.includes(a)?[a]:[]);return i.messages&&r.push(`the first ${b(i.messages,"message")}`),r.length?o("div","dim same",
`as in model call ${i.call}: ${r.join(", ")}`):null}var Ai=1500,ge=i=>JSON.stringify(i,null,2),ke=i=>i.map(({text:t})=>t).
join(""),Ei=({text:i,source:t})=>[t,i],gs=i=>i.map(({role:t,text:e})=>`${t}: ${ke(e)}`).join(`
`);function Ci(i){let t=i.filter(({kind:s})=>s==="call").length,e=i.flatMap(({kind:s,text:n})=>s==="text"?ke(n):"").join(
"").length;return[t?b(t,"call"):"",e?b(e,"character"):""].filter(Boolean).join(", ")}function Li({title:i,size:t,text:e,
content:s,open:n=!1}){let r=o("summary","",o("b","part-name",i)," ",o("span","dim",t)),a=o("details","part",r),h=()=>{if(a.
childElementCount>1)return;let l=$("Copy",e);l.classList.add("adknb-part-copy"),l.setAttribute("aria-label",`Copy ${i.toLowerCase()}`),
a.append(l,...s().map(d=>d??""))};return a.addEventListener("toggle",()=>a.open&&h()),n&&h(),a.open=n,a}function we({text:i,
source:t}){if(!t)return[i];let e=o("mark","put",o("span","hidden",`put in for ${t}: `),i||"(nothing)",o("span","source",
t));return e.title=`put in for ${t}`,[e]}function Ti({name:i,description:t,parameters:e}){return o("div","tool-sent",o("\
div","call",i),o("div","dim",t),e?D(e,"parameters",!1):null)}function bs(i){return i.map(({role:t,kind:e,text:s})=>{let n=o(
"div","said",o("span","role",t),o("span","dim",e),o("div","sent",...s.flatMap(we)));return n.dataset.kind=e,n})}O({name:"\
prompt",title:"Prompt",asks:"prompts",refresh:["patch","status"],mount:(i,t)=>new be(i,t)});var ve=class{constructor(t,e){this.store=e.store,this.root=t,this.requested=new Set,this.nodes=new Map}opened(){for(let t of this.
store.artifacts.keys())this.requested.has(t)||(this.requested.add(t),this.store.send({kind:"need",what:"artifact",id:t}))}touch(t){
t.op==="artifact"&&this.opened()}paint(){for(let t of this.store.artifacts.values()){let e=this.store.panels.get(`artifa\
ct/${t.id}`),s=this.nodes.get(t.id);if(s&&s.drawn===e)continue;let n=this.artifact({...t,...e},!!e);s?s.node.replaceWith(
n):this.root.append(n),this.nodes.set(t.id,{node:n,drawn:e})}}artifact(t,e){let s=`version ${t.version} · ${t.mime} · ${B(
t.size)}`,n=o("div","artifact-head",o("b","",t.name),o("span","dim",s)),{data:r,name:a,mime:h}=t;if(r){let d=p("Download",
"small",()=>rt(a.split("/").pop()??a,h,Mi(r)));d.setAttribute("aria-label",`Download ${a}`),n.append(d)}let l=e?this.content(
t):o("div","dim","…");return o("div","artifact",n,l)}content(t){return t.image?Gt(t.image,t.alt):t.html?o("div","html",
P(t.html)):t.page?M(t.page,t.alt):t.text?o("pre","json",t.text):o("div","dim",t.data?"Nothing that a page can show; it c\
an be downloaded.":"Too large for a page.")}};function Mi(i){return Uint8Array.from(atob(i),t=>t.charCodeAt(0))}O({name:"\
artifacts",title:"Artifacts",asks:null,exists:i=>i.artifacts.size>0,mount:(i,t)=>new ve(i,t)});function na(i,t=[]){if(i.get("html")!==void 0)return{show:n=>je(i,n)};let e=new dt(i);for(let n of t)e.receive(n);let s=new Set;
return Ae(e.own_id,i.widget_manager),e.box&&xe(i.widget_manager),{show(n){let r=[...s].find(h=>h.isOrphan);r?.moveTo(n);
let a=r??new qt(e,n,i.widget_manager);return s.add(a),e.views.add(a),e.send({kind:"page",stays:H(i.widget_manager)}),e.send(
{kind:"resync"}),()=>{s.delete(a),a.remove()}}}}export{na as open,O as registerPanel};
