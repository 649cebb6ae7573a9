var $="application/vnd.jupyter.widget-view+json",K=n=>n.metadata?.[$]?.adk_nb,Zt="application/vnd.jupyter.widget-state+j\
son",Et="<p><em>This notebook is not trusted, so the live view is not drawn here. Run <code>%confirm</code> to get its c\
ard in a new cell, or run the command “Trust Notebook”.</em></p>";function _e(n){let t=K(n);if(!t)return n;let{[$]:e,
...s}=n.data;typeof s["text/html"]=="string"&&(s["text/html"]=s["text/html"].replace(Et,""));let{[$]:i,...r}=n.metadata;
return t==="run"&&e&&(r.adk_nb={view:e.model_id}),{...n,data:s,metadata:r}}function Ie(n){let t=n?.widgets?.[Zt];if(!t?.
state)return n;let e=Object.keys(t.state),s=c=>Be.test(t.state[c].state?._anywidget_id??""),i=e.filter(s),r=i.flatMap(c=>[
t.state[c].state.code,t.state[c].state.layout]),a=new Set([...i,...r.map(c=>String(c??"").replace("IPY_MODEL_",""))]),l=Object.
fromEntries(Object.entries(t.state).filter(([c])=>!a.has(c))),{widgets:h,...d}=n;return Object.keys(l).length?{...d,widgets:{
...h,[Zt]:{...t,state:l}}}:d}var Be=/^adk_nb\.notebook\.view\.widget\./;function L(n){let t=n?.context?.model;return typeof t?.
toJSON=="function"&&!t.collaborative?t:null}function z(n,t){for(let e of L(n)?.cells??[])for(let s=0;s<(e.outputs?.length??
0);s+=1)if(e.outputs.get(s).data?.[$]?.model_id===t)return String(e.sharedModel?.getSource()??"");return""}function Re(n,t){
let{path:e,sessionContext:s}=n.context,i=t.flatMap(({id:r,outputs:a=[]})=>a.flatMap((l,h)=>K(l)==="page"?[[r,h,l.data[$]?.
model_id]]:[]));try{localStorage.setItem(`adk_nb:${e}`,JSON.stringify({kernel:s.session?.kernel?.id,views:i}))}catch{}}function te(n,t,e,s){
let{path:i,sessionContext:r}=n.context;try{let{kernel:a,views:l}=JSON.parse(localStorage.getItem(`adk_nb:${i}`)??"{}");return a===
r.session?.kernel?.id&&l.some(h=>`${h}`==`${[e,s,t]}`)}catch{return!1}}function q(n){let t=L(n),e=Symbol.for("adk_nb.kep\
t_out");if(!t||t[e])return!!t;t[e]=!0;let s=t.toJSON.bind(t);return t.toJSON=()=>{let i=s();Re(n,i.cells);let r=i.cells.
map(a=>a.outputs?{...a,outputs:a.outputs.map(_e)}:a);return{...i,metadata:Ie(i.metadata),cells:r}},!0}function ee(n,t){let e=[];for(let{id:s,outputs:i}of n.cells)for(let r=0;r<(i?.length??0);r+=1)t(i.get(r),s,r)&&e.push([i,
r]);return e}async function se(n,t){let e=L(t);if(!e)return;q(t),await t.context.ready;let{dirty:s}=e,i=({metadata:a})=>a?.
adk_nb?.view===n,r=(a,l,h)=>i(a)||!K(a)&&te(t,n,l,h);for(let[a,l]of ee(e,r)){let{adk_nb:h,...d}=a.get(l).metadata,c=i(a.
get(l))?"run":"page",u={version_major:2,version_minor:0,model_id:n},m={...a.get(l).data,[$]:u};c==="run"&&!a.trusted&&(m["\
text/html"]=`${m["text/html"]??""}${Et}`),a.set(l,{...a.get(l).toJSON(),data:m,metadata:{...d,[$]:{adk_nb:c}}})}e.dirty=
s}var G=class{constructor(t,e){this.store=t,this.manager=e}get page(){return this.manager?.context?.sessionContext?.session?.
kernel?.clientId}get known(){return L(this.manager)[Symbol.for("adk_nb.put_here")]??=new Set}get late(){return this.store.
late||this.known.has(this.store.own_id)}ask(t=["idle","running","pending"]){let{gone:e,status:s}=this.store;e||!L(this.manager)||
!this.late||t.includes(s.status)||this.page&&this.store.send({kind:"need",what:"missed",id:this.page})}touch(t){t.op==="\
status"&&this.ask(["idle","running"]),!(t.op!=="panel"||!this.page||!L(this.manager))&&(t.name==="missed"&&t.id===this.page&&
queueMicrotask(()=>this.put(t.data,e=>K(e)!=="page")),t.name==="beside"&&t.id!==this.page&&queueMicrotask(()=>this.putBeside(
t.data)))}putBeside(t){t.some(({data:e})=>this.known.has(e[$].model_id))||this.put(t,()=>!0)}put(t,e){let[s,i]=this.place(
e);for(let{at:r,data:a,metadata:l}of s?t:[]){a[$]&&this.known.add(a[$].model_id);let h={output_type:"display_data",data:a,
metadata:l};r===null?s.add(h):i+r<s.length&&s.set(i+r,h)}}place(t){let e=s=>s.data[$]?.model_id===this.store.own_id&&t(s);
return ee(L(this.manager),e)[0]??[]}};var Pe=`adknb-${Math.random().toString(36).slice(2)}`,ne=0;function b(){return ne+=1,`${Pe}-${ne}`}var ie=n=>n.filter(t=>t!=
null&&t!=="").map(t=>t??"");function o(n,t,...e){let s=document.createElement(n),i=t.split(" ").filter(Boolean);return i.
length&&(s.className=i.map(r=>`adknb-${r}`).join(" ")),s.append(...ie(e)),s}function p(n,t,e){let s=o("button",`button ${t}`,
n);return s.type="button",s.addEventListener("click",e),s}function E(...n){return o("fieldset","buttons",...n)}function f(n,...t){
return n.replaceChildren(...ie(t)),n}function v(n,t,e=""){let s=document.createElementNS("http://www.w3.org/2000/svg",n);
for(let[i,r]of Object.entries(t))s.setAttribute(i,String(r));return s.textContent=e,s}function At(...n){let t=o("div","",
...n),e=o("div","clip",t),s=p("Show all","small show-all",()=>{i=!i,r(),i||e.scrollIntoView({block:"nearest"})}),i=!1,r=()=>{
let a=t.offsetHeight>480;e.toggleAttribute("data-cut",a&&!i),s.hidden=!a,s.textContent=i?"Show less":"Show all",s.setAttribute(
"aria-expanded",String(i))};return s.hidden=!0,s.addEventListener("keydown",a=>a.stopPropagation()),new ResizeObserver(r).
observe(t),o("div","",e,s)}function C(n,t){let e=p(n,"small",async()=>{try{await navigator.clipboard.writeText(t()),e.textContent=
"Copied"}catch{e.textContent="Select the text, and copy it"}setTimeout(()=>{e.textContent=n},1500)});return e}function V(n,t,e){
let s=o("a","");s.href=URL.createObjectURL(new Blob([e],{type:t})),s.download=n,s.click(),setTimeout(()=>URL.revokeObjectURL(
s.href),1e3)}var oe=new Set("A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP TABLE TBODY TD TH\
 THEAD TR UL".split(" ")),qe=new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" ")),He=/^(https?:|mailto:|#)/i,
De=new Set([...oe,"DETAILS","MARK","SECTION","SMALL","SUMMARY"]),re=n=>N(n,De,["open","style"]);function N(n,t=oe,e=[]){
let s=document.createElement("template");s.innerHTML=n;for(let i of[...s.content.querySelectorAll("*")]){let r=i.tagName.
toUpperCase();if(qe.has(r)){i.remove();continue}let a=r==="A"?i.getAttribute("href"):null,l=(r==="TD"||r==="TH")&&i.getAttribute(
"style")==="text-align: right";for(let{name:h}of[...i.attributes])["start","title","align",...e].includes(h)||i.removeAttribute(
h);l&&i.classList.add("adknb-number"),a&&He.test(a.trim())&&(i.setAttribute("href",a.trim()),i.setAttribute("target","_b\
lank"),i.setAttribute("rel","noopener noreferrer nofollow")),t.has(r)||i.replaceWith(...i.childNodes)}for(let i of s.content.
querySelectorAll("table")){let r=o("div","wide");i.replaceWith(r),r.append(i)}return s.content}var Tt=n=>n.html!==null&&
n.html!==void 0;function Q(n,t){let e=o("div","html",N(n));return Mt(e,t),e}function Mt(n,t){/\\[([]/.test(n.textContent)&&
(t?.rendermime??t?._rendermime)?.latexTypesetter?.typeset(n)}var Y=class{constructor(t){this.manager=t,this.length=0,this.
tail=o("div","html"),this.caret=o("span","caret","▌"),this.complete=o("div","html"),this.node=o("div","growing",this.complete,
this.tail)}paint({html:t,tail:e}){if(t!==null&&t.length>this.length){let i=document.createElement("div");i.append(N(t.slice(
this.length))),this.complete.append(...i.childNodes),Mt(this.complete,this.manager),this.length=t.length}f(this.tail,N(e)),
Mt(this.tail,this.manager);let s=this.tail;for(;s.lastElementChild?.matches("p, ul, ol, li, blockquote, pre, h4, h5, h6,\
 pre > code");)s=s.lastElementChild;s.append(this.caret)}};function _(n,t="Search suggestions"){let e=o("iframe","page");
return e.sandbox="allow-popups allow-popups-to-escape-sandbox",e.referrerPolicy="no-referrer",e.title=t,e.srcdoc=n,e}function jt(n,t){
if(!/^data:image\//.test(n))return null;let e=o("img","image");return e.src=n,e.alt=t??"",e}function H(n){return n?.length?
o("div","looked-at",...n.map(Fe)):null}function Fe({kind:n,src:t,alt:e,html:s,note:i,page:r,title:a,text:l}){return n===
"image"?jt(t,e):n==="table"?o("div","html",N(s),i?o("div","dim",i):null):n==="page"?_(r,a):o("div","dim",l)}function ae(n,t){q(n.widget_manager);let e=o("div","root page-of-parts",re(n.get("html")));e.classList.add("jp-RenderedH\
TMLCommon","jp-RenderedHTML");for(let s of e.querySelectorAll("details"))Ke(s);return t.append(e),()=>e.remove()}function Ke(n){
let[t,e]=n.children;if(!e)return;let s=C("Copy",()=>Je(e));s.classList.add("adknb-part-copy"),s.setAttribute("aria-label",
`Copy ${t.firstElementChild?.textContent??""}`),t.after(s)}function Je(n){let t=[...n.querySelectorAll("tbody tr")];return t.
length?t.map(e=>[...e.children].map(({textContent:s})=>s).join("	")).join(`
`):(n.textContent??"").replace(/\n$/,"")}var X=class{constructor(){this.title="",this.modelName="",this.own_id="",this.box=null,this.seq=0,this.status={status:"i\
dle",text:""},this.notice="",this.notices=[],this.usage={text:""},this.earlier=0,this.state=[],this.drawing=null,this.marks=
{},this.offers=[],this.answer=null,this.rows=new Map,this.cards=new Map,this.lanes=new Map,this.artifacts=new Map,this.last=
new Map}load(t){let{rows:e,cards:s,lanes:i,artifacts:r=[],model:a="",...l}=t;Object.assign(this,l,{modelName:a}),this.rows=
new Map(e.map(h=>[h.id,{...h}])),this.lanes=new Map(i.map(h=>[h.id,h])),this.cards=new Map(s.map(h=>[h.id,h])),this.artifacts=
new Map(r.map(h=>[h.id,h])),this.last=new Map;for(let h of e)this.#t(h)}apply(t){let e=t.id??t.event,s=e===void 0?void 0:
this.rows.get(e);We[t.op]?.(this,t,s),(t.op==="append"||t.op==="text"||t.op==="patch")&&this.#t(this.rows.get(t.id??t.row?.
id))}merged(t){let e=new Map(this.state.map(i=>[i.key,i]));for(let i of t)e.set(i.key,i);let s=[...e.values()].filter(i=>i.
kind||i.value!==null);return[...s.filter(i=>i.kind!=="-"),...s.filter(i=>i.kind==="-")]}abandon(t){this.notice=t;let{status:e}=this.
status;(e==="running"||e==="pending")&&(this.status={status:"cancelled",text:"stale"});for(let s of this.cards.values())
s.state==="asked"&&Object.assign(s,{state:"stale",note:"its kernel is gone"})}#t(t){if(t?.lane)for(let e of this.lanes.keys())
(t.lane===e||t.lane.startsWith(`${e}.`))&&this.last.set(e,t.id)}},We={append(n,{row:t}){n.rows.set(t.id,{...t});for(let e of n.
rows.keys()){if(n.rows.size<=1e3)break;n.rows.delete(e),n.earlier+=1}},text(n,t,e){e&&(e.text+=t.s,e.streaming=!0,t.tail!==
void 0&&Object.assign(e,{html:e.html+t.html,tail:t.tail}))},patch(n,{op:t,...e},s){s&&Object.assign(s,{streaming:!1,tail:""},
e)},state(n,t,e){n.state=t.state??n.merged(t.entries),e&&(e.changes=[...e.changes??[],...t.changes])},card:(n,{card:t})=>{
n.cards.set(t.id,t)},status(n,{status:t,text:e="",seconds:s=0}){if(n.status={status:t,text:e,seconds:s},t!=="running")for(let i of n.
rows.values())i.streaming=!1},usage(n,{text:t,title:e="",tokens:s=0}){n.usage={text:t,title:e,tokens:s}},notice(n,{text:t}){
n.notice=t},model(n,{name:t}){n.modelName=t},notices(n,{notices:t}){n.notices=t},drawing(n,{drawing:t}){n.drawing=t},mark(n,{
marks:t}){n.marks={...n.marks,...t}},lane:(n,{lane:t})=>{n.lanes.set(t.id,t)},artifact:(n,{artifact:t})=>{n.artifacts.set(
t.id,t)},offers(n,{what:t}){n.offers=t},answer(n,{answer:t}){n.answer=t}};var le={idle:["○","idle"],running:["●","running"],pending:["⚠","waiting for you"],done:["✓","done"],error:["✗",
"error"],cancelled:["■","stopped"]},he={approved:["✓","You approved"],edited:["✎","You approved with changes"],rejected:[
"✗","You rejected"],answered:["✓","You answered"],reasked:["↻","asked again"],given:["✓","You answered"],refused:[
"✗","You refused"],superseded:["–","no longer asked"],retried:["↻","Retried below"],dropped:["✓","taken back"],over:[
"–","the conversation went on"],stale:["–","stale"]},J={now:["●","working"],waits:["⚠","waiting for you"],was:["\
✓","done"],failed:["✗","failed"],stopped:["■","stopped"]},de="What waits in a session that is kept in a file is as\
ked again by %confirm; else run the cell again.",D={"+":"added","~":"changed","-":"removed"};function g(n){if(n==null)return"";
if(n<1e3)return`${Math.round(n)} ms`;let t=n/1e3;return t<60?`${t.toFixed(1)} s`:`${Math.floor(t/60)} min ${Math.round(t%
60)} s`}function I(n){let t=Math.floor(n);return t<60?`${t} s`:`${Math.floor(t/60)} min ${t%60} s`}var w=(n,t)=>`${n.toLocaleString(
"en")} ${t}${n===1?"":"s"}`;function Z(n){return n==null?"nothing":k(JSON.stringify(n))}var ce=n=>n.replace(/[^ -~]/g,ue),
ue=n=>`\\u${n.charCodeAt(0).toString(16).padStart(4,"0")}`,Ue=/(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;
function k(n){return n.replace(Ue,(t,e)=>e??t.split("").map(ue).join(""))}var W=(n,t)=>JSON.stringify(n)===JSON.stringify(
t);function U(n){if(!n.startsWith('"')||!n.includes("\\n"))return n;try{return k(JSON.parse(n))}catch{return n.replace(/\\n/g,
`
`)}}var tt=class extends X{constructor(t){super(),this.model=t,this.manager=t.widget_manager,this.listed=t.get("panels"),this.
views=new Set,this.sent=new Map,this.panels=new Map,this.needed=new Map,this.ahead=new Map,this.gone=!1,this.statusAt=0,
this.heard=new Map;let e=t.get("snapshot");this.late=e.seq>0,this.load(e),this.statusAt=performance.now(),t.on("change:s\
napshot",()=>this.adopt(t.get("snapshot"))),t.on("msg:custom",s=>this.receive(s)),t.on("comm_live_update",()=>this.send(
{kind:"resync"}))}need(t,e,s){let i=`${t}/${e}`;this.panels.has(i)?s(this.panels.get(i)):this.send({kind:"need",what:t,id:e})&&
this.needed.set(i,s)}adopt(t){if(!(t.seq<=this.seq)){this.load(t),this.statusAt=performance.now(),this.gone=!1,this.#t();
for(let e of this.views)e.reset()}}receive(t){t.kind!=="ops"||t.seq<=this.seq||(this.ahead.set(t.seq,t.ops),this.#t(),this.
ahead.size&&this.send({kind:"resync"}))}#t(){for(let t of this.ahead.keys())t<=this.seq&&this.ahead.delete(t);for(let t=this.
ahead.get(this.seq+1);t;t=this.ahead.get(this.seq+1)){this.seq+=1;for(let e of t)this.#e(e);this.ahead.delete(this.seq)}}#e(t){
this.apply(t),t.op==="status"&&(this.statusAt=performance.now());let e=t.id??t.row?.id;if((t.op==="append"||t.op==="text"||
t.op==="patch")&&this.heard.set(e,performance.now()),t.op==="panel"){let s=t.id?`${t.name}/${t.id}`:t.name;this.panels.set(
s,t.data),this.needed.get(s)?.(t.data),this.needed.delete(s)}for(let s of this.views)s.touch(t)}get seconds(){let{status:t,
seconds:e=0}=this.status;return e+(t==="running"?(performance.now()-this.statusAt)/1e3:0)}silence(t){let e=this.heard.get(
t);return e===void 0?0:(performance.now()-e)/1e3}isOpen(t){return t.state==="asked"&&this.sent.get(t.id)!==t.again}send(t){
try{return this.model.send(t),!0}catch{return this.#s(),!1}}#s(){this.gone=!0,this.abandon(`The kernel that ran this is \
gone. ${de}`);for(let t of this.views)t.reset()}decide(t,e,s){if(this.isOpen(t)){this.send({kind:"answer",id:t.id,decision:e,
...s})&&this.sent.set(t.id,t.again);for(let i of this.views)i.touch({op:"card",card:t})}}};var ze=/^[\s\S]*[.!?…:;](?=\s)|^[\s\S]*\n/,Ge=12,et=class{constructor(t){this.store=t,this.begun=new Map,this.node=o("\
div","hidden"),this.node.setAttribute("aria-live","polite"),this.node.setAttribute("aria-relevant","additions")}touch(t){
if(t.op==="status"&&t.status!=="running")for(let s of[...this.begun.keys()])this.rest(this.store.rows.get(s));let e=this.
store.rows.get(t.id??t.row?.id);e&&(t.op==="append"&&e.kind!=="user"&&!e.streaming?this.whole(e):t.op==="text"?this.sentences(
e):t.op==="patch"&&this.#t(t,e))}#t(t,e){this.begun.has(e.id)?this.rest(e):t.kind==="marker"?this.whole(e):typeof t.ok==
"boolean"&&this.say(`${e.tool} ${t.ok?"is done":"failed"}: ${e.result}`)}whole(t){t.tool!=="transfer_to_agent"&&(t.kind===
"call"?this.say(`${t.author} calls ${t.tool}`):t.text&&this.say(`${t.author}${t.kind==="error"?", error":""}: ${t.text}`))}sentences(t){
let e=this.begun.get(t.id)??0,s=ze.exec(t.text.slice(e))?.[0];this.begun.set(t.id,e+(s?.length??0)),s&&this.say(e?s:`${t.
author}: ${s}`)}rest(t){if(!t)return;let e=this.begun.get(t.id)??0;this.begun.delete(t.id);let s=t.text.slice(e);s.trim()&&
this.say(e?s:`${t.author}: ${s}`)}say(t){for(this.node.append(o("div","",t.replace(/[*`|]+|^#+ /gm,"").trim().slice(0,500)));this.
node.childElementCount>Ge;)this.node.firstChild?.remove()}};var Ve=8,Lt=n=>n.reduce((t,{count:e})=>t+e,0),Ct=({arguments:n})=>n.map(({name:t,text:e})=>`${t}=${e}`).join(", "),st=class{constructor(t,e){
this.rows=t.alike,this.keys=t.alike.map(({key:d})=>d).join(),this.whole=e,this.changed=()=>{},this.ticks=new Map,this.lines=
new Map;let s=[...new Set(this.rows.flatMap(d=>d.arguments.map(({name:c})=>c)))],i=this.rows.some(({hint:d})=>d);this.all=
this.#t("all",()=>{for(let[d,c]of this.ticks)this.lines.get(d)?.hidden||(c.checked=this.all.checked)});let r=["calls",...s,
...i?["asks"]:[]].map(d=>o("th","",d)),a=this.rows.map(d=>this.#e(d,s,i)),l=o("table","alike",o("thead","",o("tr","",o("\
th","",this.all),...r)));l.append(o("tbody","",...a)),this.count=o("div","dim"),this.count.setAttribute("role","status");
let h=o("div","alike-scroll",l);h.tabIndex=0,h.setAttribute("role","group"),h.setAttribute("aria-label",`calls of ${t.tool}`),
this.node=o("div","",this.rows.length>=Ve?this.#o():null,h,this.count),this.#n()}get ticked(){return this.rows.filter(t=>this.
ticks.get(t)?.checked).map(({key:t})=>t)}#t(t,e){let s=o("input","tick");return s.type="checkbox",s.checked=!0,s.setAttribute(
"aria-label",t),s.addEventListener("change",()=>{e(),this.#n()}),s}#e(t,e,s){let i=this.#t(Ct(t),()=>{}),r=e.map(l=>{let h=t.
arguments.findIndex(d=>d.name===l);return o("td","",h<0?null:this.#s(t,h))}),a=o("tr","",o("td","",i),o("td","count",t.count.
toLocaleString("en")),...r);return s&&a.append(o("td","hint",t.hint)),this.ticks.set(t,i),this.lines.set(t,a),a}#s(t,e){
let{name:s,text:i,left_out:r}=t.arguments[e],a=o("code","",i);if(!r)return a;let l=p(`Show all of ${s}`,"small",()=>{this.
whole(h=>{a.textContent=h[t.key][e],l.remove()})});return o("div","",a," ",l)}#o(){let t=o("input","input");return t.type=
"search",t.placeholder="search these calls",t.setAttribute("aria-label","search these calls"),t.addEventListener("input",
()=>{let e=t.value.toLowerCase().split(/\s+/);for(let[s,i]of this.lines){let r=`${Ct(s)} ${s.hint}`.toLowerCase();i.hidden=
!e.every(a=>r.includes(a))}this.#n()}),o("div","alike-search",t)}#n(){let t=this.rows.filter(r=>!this.lines.get(r)?.hidden),
e=this.rows.filter(r=>this.ticks.get(r)?.checked),s=t.filter(r=>this.ticks.get(r)?.checked).length;this.all.checked=t.length>
0&&s===t.length,this.all.indeterminate=s>0&&s<t.length;let i=t.length<this.rows.length?`; ${t.length} of ${this.rows.length}\
 rows found`:"";f(this.count,`${Lt(e).toLocaleString("en")} of ${Lt(this.rows).toLocaleString("en")} calls ticked${i}`),
this.changed()}};function pe(n){let t=n.alike.map(e=>{let s=e.count>1?`${e.count.toLocaleString("en")} × `:"";return o(
"div","",s,o("code","",`${n.tool}(${Ct(e)})`))});return o("div","decided-calls",...t)}function fe(n){let t=Lt(n.alike);return[
`${t.toLocaleString("en")} ${t===1?"call":"calls"} of `,o("code","",n.tool)]}var nt=n=>n?.default??void 0;function A(n,t){let e=/^#\/\$defs\/(.+)$/.exec(n.$ref??"")?.[1],s=e&&t.$defs?.[e];if(s)return{
...A(s,{$defs:{}}),...n,$ref:void 0};if(Array.isArray(n.type)&&n.type.length===2&&n.type.includes("null"))return{...n,type:n.
type.find(l=>l!=="null"),nullable:!0};let{anyOf:i=[],...r}=n,a=i.filter(({type:l})=>l!=="null");return a.length!==1||a.length===
i.length?n:{...A(a[0],t),...r,nullable:!0}}function it(n,t){if(Array.isArray(n.enum))return"enum";if(typeof t=="string"&&
k(t)!==t)return"json";let e=typeof n.type=="string"?n.type.toLowerCase():"";if(["string","integer","number","boolean"].includes(
e))return e;if(e||n.anyOf||n.$ref)return"json";let s=typeof t;return["string","number","boolean"].includes(s)?s:"json"}function ge(n,t,e){
if(!(t==="integer"?/^[+-]?\d+$/:/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i).test(n))return{error:t==="integer"?"a whole num\
ber is needed":"a number is needed"};let i=Number(n);return t==="integer"&&!Number.isSafeInteger(i)?{error:"too large to\
 be sent exactly"}:e.minimum!==void 0&&i<e.minimum?{error:`at least ${e.minimum}`}:e.maximum!==void 0&&i>e.maximum?{error:`\
at most ${e.maximum}`}:{value:i}}function be(n){try{return{value:JSON.parse(n)}}catch(t){return{error:`not JSON: ${t instanceof
Error?t.message:t}`}}}var me=n=>n===null?"Nothing":k(typeof n=="string"?n:JSON.stringify(n));function Nt(n,t){let e=A(n,
t),s=e.nullable?[{label:"Nothing",value:null}]:[];if(Object.hasOwn(e,"const"))return[{label:e.title??me(e.const),value:e.
const}];if(Array.isArray(e.enum))return[...e.enum.map(r=>({label:me(r),value:r})),...s];if(e.type==="boolean")return[{label:"\
Yes",value:!0},{label:"No",value:!1},...s];if(e.type==="null")return[{label:"Nothing",value:null}];let i=(e.oneOf??e.anyOf??
[]).map(r=>Nt(r,t));return i.length&&i.every(r=>r!==null)?i.flat():null}var ot=n=>typeof n=="object"&&n!==null&&!Array.isArray(
n);var Ye=3;function Qe(n,t,e,s){if(n==="enum")return Xe(t,s?e:t.default);if(n==="boolean")return Ze((s?e:t.default)===!0);
if(n==="json")return ts(e,s);let i=es(n,t,e),r=()=>!(n==="string"?i.value:i.value.trim());return{node:i,read(){return r()&&
!s&&!t.nullable?{skip:!0}:r()&&t.nullable?n==="string"&&!s?{skip:!0}:{value:null}:n==="string"?{value:i.value}:ge(i.value.
trim(),n,t)}}}function Xe({enum:n=[]},t){let e=o("select","input",...n.map(s=>o("option","",k(String(s)))));return e.selectedIndex=
n.findIndex(s=>W(s,t)),{node:e,read:()=>e.selectedIndex<0?{skip:!0}:{value:n[e.selectedIndex]}}}function Ze(n){let t=o("\
input","check");return t.type="checkbox",t.checked=n,{node:t,read:()=>({value:t.checked})}}function ts(n,t){let e=o("tex\
tarea","input");return e.value=t?k(JSON.stringify(n,null,2)):"",e.rows=Math.min(8,e.value.split(`
`).length+1),{node:e,read:()=>!t&&!e.value.trim()?{skip:!0}:be(e.value)}}function es(n,t,e){let i=n==="string"&&typeof e==
"string"&&(e.includes(`
`)||e.length>60)?o("textarea","input"):o("input","input"),r=t.format==="password";return i instanceof HTMLInputElement&&
Object.assign(i,{type:r?"password":"text",spellcheck:!1}),i.autocomplete=r?"new-password":"off",n!=="string"&&(i.inputMode=
n==="integer"?"numeric":"decimal"),i.value=e==null?"":String(e),i}var we=n=>n instanceof HTMLInputElement&&n.type==="che\
ckbox"?n.checked:n.value;function rt(n,t,e,s,{depth:i=0,within:r="",needed:a}={}){let l=A(t,s),h=e[n]??{};if(l.properties&&
i<Ye&&ot(h))return is(n,l,h,s,i,r);let d=Object.hasOwn(e,n),c=it(l,e[n]),{node:u,read:m}=Qe(c,l,e[n],d),M=we(u);u.id=b();
let y=i===0&&!ss(s,n),O=s["x-titles"]?l.title:null,S=O?"":` ${ns(l,c,d,a,y)}`,P=o("label","field-name",O??(y?ce(n):k(n)));
P.append(o("span","dim",S)),P.htmlFor=u.id;let T=o("div","problem");T.id=`${u.id}-problem`,T.setAttribute("role","alert"),
u.setAttribute("aria-describedby",T.id),a&&c!=="boolean"&&u.setAttribute("aria-required","true");let Ot=()=>{let j=we(u)===
M?{skip:!0}:m();return T.textContent=j.error?k(`${r}${n}: ${j.error}`):"",u.setAttribute("aria-invalid",String(!!j.error)),
j.error?{...j,node:u}:j};return{name:n,title:O,box:o("div","field",P,u,ke(l),T),node:u,check:Ot}}var ss=({properties:n,additionalProperties:t},e)=>!n||
!!t||Object.hasOwn(n,e),ke=n=>n.description?o("div","dim",k(n.description)):null;function ns(n,t,e,s,i){let r={json:"JSO\
N",enum:"one of"}[t]??t,a=[i?"unknown":"",r,n.nullable&&s!==!1?"or empty":""];return!e&&nt(n)!==void 0?a.push(`default ${Z(
n.default)}`):s===!1&&a.push("optional"),a.filter(Boolean).join(", ")}function _t(n,t,e,s=0,i=""){let r=n.properties??{},
a=[...new Set([...Object.keys(r),...Object.keys(t)])],l=h=>Object.hasOwn(r,h)?(n.required??[]).includes(h):void 0;return a.
map(h=>rt(h,r[h]??{},t,e,{depth:s,within:i,needed:l(h)}))}function is(n,t,e,s,i,r){let a=_t(t,e,s,i+1,`${r}${n}.`),l=o("\
fieldset","group",o("legend","field-name",k(n)),ke(t));l.append(...a.map(d=>d.box));let h=()=>{let d=a.map(m=>({part:m.name,
...m.check()})),c=d.find(({error:m})=>m);if(c)return c;let u=d.filter(({skip:m})=>!m).map(({part:m,value:M})=>[m,M]);return u.
length?{value:{...e,...Object.fromEntries(u)}}:{skip:!0}};return{name:n,box:l,node:a[0]?.node,check:h}}function It(n,t,e){
return W(t,e)?[]:!ot(t)||!ot(e)?[o("div","",o("b","",k(n)),` ${Z(t)} → ${Z(e)}`)]:[...new Set([...Object.keys(t),...Object.
keys(e)])].flatMap(i=>It(`${n}.${i}`,t[i],e[i]))}function ve(n,t){n.addEventListener("keydown",e=>{e.key!=="Escape"||e.isComposing||
(e.stopPropagation(),t())})}var os=12,B=class{constructor(t,e,{label:s="Send",look:i="go",changed:r=s,more:a=[],leave:l=null,values:h=null}={}){this.
send=e,this.label=s,this.changed=r,this.values=h,this.go=p(s,i,()=>this.submit()),this.root=t??{},this.schema=A(this.root,
this.root),this.twin=o("span","twin"),this.problem=o("div","problem"),this.problem.setAttribute("role","alert"),this.difference=
o("div","difference"),this.difference.setAttribute("aria-live","polite"),this.fields=[],this.isObject=!!(h||this.schema.
properties);let d=Nt(this.schema,this.root),c=!h&&d&&d.length>0&&d.length<=os?d:null;this.first=void 0,this.node=c?this.#t(
c):this.#e(d,a,l)}#t(t){let e=t.map(({label:s,value:i})=>p(s,"choice",()=>this.send(i)));return this.first=e[0],E(...e,this.
twin)}#e(t,e,s){this.fields=this.isObject?_t(this.schema,this.values??{},this.root):[this.#o(t)],this.first=this.fields[0]?.
node;let i=this.fields.map(a=>a.box),r=o("div",`form answer${this.values?" edits":""}`,...i,this.values?this.difference:
null,this.problem);return r.append(E(this.go,...e,this.twin)),r.addEventListener("input",()=>this.check()),s&&ve(r,s),r.
addEventListener("keydown",a=>this.#s(a)),r}#s(t){this.values||t.key!=="Enter"||t.isComposing||t.shiftKey||!(t.target instanceof
Element)||!t.target.matches("input, .adknb-say")||(t.preventDefault(),this.submit())}#o(t){let e=it(this.schema);return t?
rt("Your answer",{...this.schema,enum:t.map(i=>i.value)},{},this.root):e==="string"||e==="json"&&!["object","array"].includes(
String(this.schema.type))?this.#n():rt(this.schema.title??"Your answer",this.schema,{},this.root)}#n(){let t=o("textarea",
"input say");t.rows=1,t.id=b(),t.value=typeof this.schema.default=="string"?this.schema.default:"",t.addEventListener("i\
nput",()=>{t.rows=Math.min(8,t.value.split(`
`).length)});let e=o("label","field-name",this.schema.title??"Your answer");e.htmlFor=t.id;let s=this.schema.nullable?{value:null}:
{skip:!0},i=()=>t.value.trim()?{value:t.value}:s;return{name:"",node:t,box:o("div","field",e,t),check:i}}check(){this.problem.
textContent="";let t=this.#i(l=>l.check());this.go.disabled=t.some(([,{error:l}])=>l!==void 0);let{values:e}=this;if(!e)
return;let s=this.schema.properties??{},i=l=>Object.hasOwn(e,l)?e[l]:nt(s[l]),a=Object.entries(this.#r(t)??{}).flatMap(([
l,h])=>It(l,i(l),h));f(this.difference,...a),this.go.textContent=a.length?this.changed:this.label}#i(t){return this.fields.
map(e=>[e,t(e)])}#r(t){let e=t.filter(([{name:s},{skip:i,error:r,value:a}])=>!i&&!r&&!W(a,this.values?.[s]));return e.length?
this.#a(e):null}submit(){let t=this.#i(a=>this.#h(a)),[e,s]=t.find(([,{error:a}])=>a)??[],[i]=t.find(([a,{skip:l}])=>l&&
this.#l(a))??[],r=i?.name?`${i.title??i.name}: nothing was typed`:"nothing was typed";this.problem.textContent=i&&!e?k(r):
"",e?(s?.node??e.node)?.focus():i?i.node?.focus():this.values?this.send(this.#r(t)):this.send(this.isObject?this.#a(t):t[0][1].
value)}#a(t){return Object.fromEntries(t.filter(([,{skip:e}])=>!e).map(([{name:e},{value:s}])=>[e,s]))}#h(t){let e=t.check();
if(typeof e.value=="string"&&!e.value.trim()&&this.#l(t))return{skip:!0};if(!e.skip||this.values&&!this.#l(t))return e;let s=this.
isObject?A(this.schema.properties?.[t.name]??{},this.root):this.schema;return s.default!==void 0?{value:s.default}:t.node instanceof
HTMLInputElement&&t.node.type==="checkbox"?{value:t.node instanceof HTMLInputElement&&t.node.checked}:e}#l({name:t}){return this.
isObject?this.values&&Object.hasOwn(this.values,t)?!1:!A(this.schema.properties?.[t]??{},this.root).properties&&(this.schema.
required??[]).includes(t):!0}};function xe(n){let t=/^In\[(\d+)\]/.exec(n)?.[1];if(!t||!document.querySelector(".jp-Notebook"))return o("code","where",
n);let e=p(n,"where",()=>{let i=[...e.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt")??[]].find(a=>a.textContent.
trim()===`[${t}]:`)?.closest(".jp-Cell");i?.scrollIntoView({block:"center"});let r=i?.querySelector(".cm-content");r instanceof
HTMLElement&&r.focus({preventScroll:!0})});return e.title="Go to that cell",e}function Bt(n,t){let e=(n??[]).map(({name:s,
text:i,left_out:r,note:a})=>{let l=o("code","",i),h=a?o("span",a==="unknown"?"bad":"dim",` (${a})`):null,d=r&&t?p(`Show \
all of ${s}`,"small",()=>t(l,d??l)):null;return o("span","arg",o("span","dim",`${s} `),l,h,d)});return e.length?o("div",
"arguments",...e):null}function ye(n){if(!n)return[null,null];let t=o("pre","json trace",n);t.hidden=!0,t.tabIndex=0,t.id=
b(),t.setAttribute("role","group"),t.setAttribute("aria-label","Traceback");let e=p("Show traceback","",()=>{t.hidden=!t.
hidden,e.textContent=t.hidden?"Show traceback":"Hide traceback",e.setAttribute("aria-expanded",String(!t.hidden))});return e.
setAttribute("aria-controls",t.id),e.setAttribute("aria-expanded","false"),[e,t]}function $e({tool:n,where:t,arguments:e,
sent:s,traceback:i}){let[r,a]=ye(i),l=o("div","",o("b","bad","✗ Error")," ",o("code","",n)," failed",t?" in ":"");t&&l.
append(xe(t));let h=o("div","",o("span","dim","sent to the model as "),o("code","",s));return o("div","failure",l,Bt(e),
h,r?E(r):null,a)}function Se(n,t,e){let s=o("div","ask",o("b","bad","✗ Error"),` ${n.title}`),i=s.textContent;if(n.where&&
s.append(" in ",xe(n.where)),!t)return{head:s,parts:[],spoken:i};let[r,a]=ye(n.traceback),l=[n.ways.includes("retry")?p(
"Retry","",()=>e("retry")):null,n.ways.includes("drop")?p("Drop turn","",()=>e("drop")):null];return l[0]&&(l[0].title="\
Undo the turn, and send its message again"),l[1]&&(l[1].title="Undo the turn: agents no longer see it"),{head:s,parts:[E(
...l,r),a??""],spoken:i}}function Oe(n){if(n.seconds===null||n.seconds===void 0)return{head:o("div","ask",o("span","icon",
"⏳"),` ${n.title}`),parts:[],spoken:n.title};let t=o("span","count"),e=performance.now()+n.seconds*1e3,s=()=>{let r=Math.
ceil((e-performance.now())/1e3);t.textContent=r>0?`asked again in ${r} s`:"asked again now",r>0&&(t.isConnected||!t.dataset.
seen)&&setTimeout(s,250),t.isConnected&&(t.dataset.seen="")};return s(),{head:o("div","ask",o("span","icon","⏳"),` ${n.
title}; `,t,n.hint?o("span","dim",` (${n.hint})`):""),parts:[],spoken:`${n.title}; ${t.textContent}`}}var at=class{constructor(){this.places=new Map,this.appeared=new Map,this.looking=0,this.onScroll=()=>this.look(),this.focused=
null}watch(t){let e=[...t.values()];for(let s of this.places.keys())e.includes(s)||this.places.delete(s);for(let s of this.
appeared.keys())t.has(s)||this.appeared.delete(s);for(let[s,i]of t)this.appeared.has(s)||this.appeared.set(s,performance.
now()),this.places.has(i)||this.places.set(i,{card:"",buttons:"",changed:0,id:s});t.size?this.looking||(this.looking=window.
setInterval(()=>this.look(),100),document.addEventListener("scroll",this.onScroll,!0)):this.stop(),this.look()}stop(){window.
clearInterval(this.looking),document.removeEventListener("scroll",this.onScroll,!0),this.looking=0}look(){let t=performance.
now();for(let[e,s]of this.places){let i=Ee(e),r=[...e.querySelectorAll("button")].map(Ee).join(" ");(i!==s.card||r!==s.buttons)&&
(s.changed=t),s.card=i,s.buttons=r,this.#t(e,t-s.changed<500)}}#t(t,e){let s=document.activeElement;for(let i of t.querySelectorAll(
"fieldset.adknb-buttons"))i instanceof HTMLFieldSetElement&&(e&&s instanceof HTMLElement&&i.contains(s)&&(this.focused=s),
i.disabled=e);e||!this.focused||!t.contains(this.focused)||((!s||s===document.body||s===t)&&this.focused.focus({preventScroll:!0}),
this.focused=null)}focus(t){t.focus(),document.activeElement!==t&&(this.focused=t)}guard(t){let e=s=>{this.#e(t,s)||(s.preventDefault(),
s.stopImmediatePropagation())};t.addEventListener("click",e,!0),t.addEventListener("keydown",e,!0)}#e(t,e){let i=(e.target instanceof
Element?e.target:t).closest("button, a")!==null,r=e.timeStamp;this.look();let a=this.places.get(t);return a?e instanceof
KeyboardEvent?e.key!=="Enter"&&!(e.key===" "&&i)?!0:!e.repeat&&r-(this.appeared.get(a.id)??0)>=500:!i||r-a.changed>=500:
!0}};function Ee(n){let{left:t,top:e,width:s,height:i}=n.getBoundingClientRect();return n instanceof HTMLButtonElement?[
t,e,s,i].map(Math.round).join():[t,e].map(Math.round).join()}var lt=class{constructor(t,e){this.store=t,this.view=e,this.nodes=new Map,this.forms=new Map,this.tables=new Map,this.steady=
new at,this.node=o("div","cards"),this.answered=o("div","cards decisions")}paint(){for(let[e,{node:s}]of this.nodes)this.
store.cards.has(e)||(s.remove(),this.nodes.delete(e),this.forms.delete(e),this.tables.delete(e));for(let e of this.store.
cards.values())this.#t(e);let t=new Map;for(let[e,{node:s}]of this.nodes){let i=this.store.cards.get(e);i&&this.store.isOpen(
i)&&t.set(e,s)}this.steady.watch(t)}#t(t){let e=JSON.stringify([t,this.store.isOpen(t),this.isNext(t)]),s=this.nodes.get(
t.id);if(s?.drawn===e)return;let i=document.activeElement,r=s?.node.contains(i),a=this.card(t),l=ht(t)&&!this.store.box?
this.answered:this.node;if(s?.node.parentNode===l?s.node.replaceWith(a):(s?.node.remove(),l.append(a)),this.nodes.set(t.
id,{node:a,drawn:e}),!r)return;let h=this.store.isOpen(t)?this.forms.get(t.id)?.first:null;(a.contains(i)&&i instanceof HTMLElement?
i:h??a).focus()}card(t){if(t.kind==="error"||t.kind==="wait")return this.notice(t);if(ht(t))return this.decision(t);let e=this.
store.isOpen(t),s=t.kind==="input",i=o("div","ask",o("span","icon",e?"⚠":""),` ${t.agent} `,...rs(t)),r=this.frame(t,i,
e?"alertdialog":"group"),a=t.hint?o("div",s?"question":"hint",t.hint):"",l=this.#o(t,e);return r.append(...s?[a,l]:[l,a]),
r.append(...(t.remarks??[]).map(h=>o("div","remark",h))),r.append(...(t.documents??[]).map(as)),e?this.#e(r,t,i.textContent??
""):r.append(this.outcome(t)),r}#e(t,e,s){t.append(e.note?o("div","problem",e.note):""),e.kind==="credential"?this.offerToGive(
t,e):e.kind==="input"&&!e.tool?this.offerToAnswer(t,e):this.offer(t,e),this.view.liveText.textContent=[s,e.kind==="input"?
e.hint:"",e.note].filter(Boolean).join(" ")}decision(t){let e=(t.arguments??[]).map(({name:l,text:h})=>`${l}=${h}`).join(
", "),s=t.tool?o("code","",`${t.tool}(${e})`):t.hint?`"${t.hint}"`:"",i=t.agent===this.store.title?null:o("span","dim",`\
 · ${t.agent}`),r=o("div","ask",this.outcome(t,...t.alike.length?fe(t):[s]),i),a=this.frame(t,r,"group");return t.alike.
length&&a.append(pe(t)),a.classList.add("adknb-decision"),a.title=t.tool&&t.hint?t.hint:"",this.view.liveText.textContent=
"",a}frame(t,e,s){let i=o("div","card",e);return e.id=b(),i.dataset.state=t.state,i.dataset.card=t.id,i.dataset.kind=t.kind,
i.tabIndex=-1,i.setAttribute("aria-labelledby",e.id),i.setAttribute("role",s),this.steady.guard(i),i.addEventListener("k\
eydown",r=>this.onCardKey(r)),i}notice(t){let e=this.store.isOpen(t),s=h=>this.store.decide(t,h,{}),{head:i,parts:r,spoken:a}=t.
kind==="wait"?Oe(t):Se(t,e,s),l=this.frame(t,i,"group");return l.append(...r),e?this.view.liveText.textContent=a:t.kind===
"wait"?l.hidden=!0:(t.state!=="asked"||this.store.sent.has(t.id))&&l.append(this.outcome(t)),l}outcome({state:t,note:e},...s){
let[i,r]=he[t]??["…","sent; the kernel answers when it is free"],a=!e||e.startsWith("in [")?e:`: ${e}`;return o("span",
"outcome",o("b","",`${i} ${r}`),s.some(Boolean)?" ":"",...s,a&&!a.startsWith(":")?` ${a}`:a)}offer(t,e){let s=o("div","p\
lace");t.append(s);let i=this.forms.get(e.id);if(i&&!(e.changed&&i.values)){s.append(i.node);return}let r=S=>{this.forms.
set(e.id,S),f(s,S.node),S.first?.focus()},a=()=>this.#s(e),l=S=>()=>this.leaveForm(e.id,S),h=e.how?o("span","twin","or t\
ype: ",o("code","",e.how)):"",[d,c]=e.in_doubt?["Call again","Do not call again…"]:["Approve","Reject…"],u=p(c,"reje\
ct",()=>r(this.reasonForm(e,a,l("reject")))),m=p(d,"go",()=>this.answer(a(),!0));if(e.changed){s.append(this.offerAfterAChange(
e,m,u,h));return}let M=p("Edit…","edit",()=>{this.whole(e,S=>r(this.editForm(S,a,l("edit"))))}),y=this.tables.get(e.id);
y&&(y.changed=()=>{m.disabled=!y.ticked.length,u.disabled=!y.ticked.length},y.changed());let O=[m,e.kind==="approval"&&!e.
alike.length?M:null,u];e.destructive&&O.reverse(),s.append(E(...O,h))}#s(t){return this.store.cards.get(t.id)??t}leaveForm(t,e){
this.forms.delete(t);let s=this.nodes.get(t);s&&(s.drawn=""),this.paint();let i=this.nodes.get(t)?.node.querySelector(`.\
adknb-${e}`);i instanceof HTMLElement&&this.steady.focus(i)}editForm(t,e,s){let r={label:"Approve unchanged",changed:"Ap\
prove with these changes",more:[p("Back","back",s)],leave:s,values:t.args};return new B(t.schema,a=>this.answer(e(),!0,{
args:a}),r)}reasonForm({kind:t},e,s){let i={type:"string",title:t==="approval"||t==="doubt"?"reason (optional; the model\
 is told)":"reason (optional)"},r=l=>this.answer(e(),!1,{reason:l?.reason?.trim()||null}),a={label:"Reject",look:"reject",
more:[p("Back","back",s)],leave:s};return new B({properties:{reason:i},"x-titles":!0},r,a)}answer(t,e,{args:s=null,reason:i=null}={}){
let r=t.alike.length?this.tables.get(t.id)?.ticked??[t.alike[0].key]:void 0;t.kind==="approval"||t.kind==="doubt"?this.store.
decide(t,e?"approve":"reject",{args:s,reason:i,alike:r}):this.store.decide(t,"answer",{value:{confirmed:e,...i&&{reason:i},
...r&&{alike:r}}})}whole(t,e){t.args?e(t):this.store.need("call",t.id,e)}showAll(t,e,s){let i=[...e.closest(".adknb-argu\
ments")?.children??[]].findIndex(r=>r.contains(e));this.store.need("call",t.id,({texts:r})=>{e.classList.add("adknb-whol\
e"),e.tabIndex=0,e.textContent=r[i],s.remove()})}#o(t,e){let s=e?this.#n(t):null;if(s)return s.node;let i=Bt(t.arguments,
(a,l)=>this.showAll(t,a,l))??"",[r]=t.alike;return t.alike.length!==1||r.count===1?i:o("div","",i,o("div","remark",`${r.
count.toLocaleString("en")} calls with these arguments`))}#n(t){if(t.alike.length<2)return null;let e=this.tables.get(t.
id);if(e?.keys===t.alike.map(({key:i})=>i).join())return e;let s=new st(t,i=>this.store.need("call",t.id,({alike:r})=>i(
r)));return this.tables.set(t.id,s),s}offerAfterAChange(t,e,s,i){e.disabled=!0;let r=c=>this.store.decide(t,c,{args:null,
reason:null}),a=t.gone?"":p("Re-ask","go",()=>r("reask")),l=t.gone?`Run ${t.version}`:`Run old version (${t.version})`,h=t.
version?p(l,"edit",()=>r("old")):"",d=o("div","problem",t.changed);return o("div","",d,E(e,a,h,s,i))}offerToGive(t,e){let s=this.#i(
e,()=>{let i=(l,h)=>{this.forms.delete(e.id),this.store.decide(this.#s(e),l,h)},r=p("Refuse","refuse",()=>i("refuse",{})),
a={...e.answer_schema,"x-titles":!0};return new B(a,l=>i("answer",{value:l}),{label:"Continue",more:[r]})});f(s.twin,"or\
 type: ",o("code","",e.how)),t.append(ls(e.link)??"",s.node)}offerToAnswer(t,e){let s=a=>this.store.decide(this.#s(e),"a\
nswer",{value:a}),i=this.#i(e,()=>new B(e.answer_schema,s)),r=this.store.box&&this.isNext(e);f(i.twin,...r?["or type it \
below"]:["or type: ",o("code","",e.how)]),t.append(i.node)}#i(t,e){let s=this.forms.get(t.id)??e();return this.forms.set(
t.id,s),s}isNext(t){return t===[...this.store.cards.values()].find(e=>e.kind==="input"&&this.store.isOpen(e))}onCardKey(t){
t.key==="Escape"&&this.view.leave(),t.stopPropagation()}};function ht({kind:n,state:t}){return t!=="asked"&&n!=="error"&&
n!=="wait"}function rs({kind:n,tool:t,needs:e,in_doubt:s}){return s?["asks whether to call ",o("b","",t)," again, which \
may have taken effect already"]:n==="credential"?["calls ",o("b","",t),`, which needs ${e}`]:n==="input"&&!t?["asks"]:["\
asks to call ",o("b","",t)]}function as({title:n,text:t},e){let s=o("pre","json source",t);s.tabIndex=0,s.setAttribute("\
role","group"),s.setAttribute("aria-label",n);let i=o("details","document",o("summary","",n),s);return i.open=e===0,i}function ls(n){
if(!/^https?:/i.test(n))return null;let t=o("a","link",`Open ${new URL(n).host}`);return t.href=n,t.target="_blank",t.rel=
"noopener noreferrer",o("div","step",t,o("span","dim"," and sign in there, then paste the address it leads to:"))}var hs=8,dt=class{constructor(t,e){this.store=t,this.view=e,this.input=o("textarea","input say"),this.input.rows=1,this.
input.id=b(),this.hint=o("div","dim hint-line"),this.hint.id=`${this.input.id}-hint`,this.input.setAttribute("aria-descr\
ibedby",this.hint.id),this.input.addEventListener("input",()=>this.grow()),this.sendButton=p("Send","go",()=>this.submit());
let s=o("label","hidden",`Message to ${t.title}`);s.htmlFor=this.input.id,this.node=o("div","composer",s,this.input,this.
sendButton,this.hint),this.node.addEventListener("keydown",i=>this.onKey(i))}get reason(){let{status:t,cards:e}=this.store;
return this.store.gone?"The kernel is gone: run the cell again.":[...e.values()].some(s=>this.store.isOpen(s)&&!this.isTypedHere(
s))?"Answer the card above first.":this.waits?"Sent; the kernel answers when it is free.":t.status==="running"?"Wait for\
 the answer, or stop it.":""}isTypedHere(t){return["error","wait"].includes(t.kind)||t.kind==="input"&&!t.tool}paint(){let{
reason:t}=this,e=[...this.store.cards.values()].some(s=>s.kind==="input"&&this.store.isOpen(s));this.sendButton.disabled=
!!t,this.input.disabled=!!this.store.gone,this.hint.textContent=t||`Enter sends${e?" your answer":""}, Shift+Enter makes\
 a new line.`}touch(t){t.op==="status"&&(this.waits=!1)}submit(){let t=this.input.value;!t.trim()||this.reason||this.store.
send({kind:"ask",text:t})&&(this.input.value="",this.waits=!0,this.grow(),this.paint(),this.input.focus())}grow(){this.input.
rows=Math.min(hs,this.input.value.split(`
`).length)}onKey(t){t.stopPropagation(),t.key==="Escape"?this.view.leave():t.key==="Enter"&&t.target===this.input&&!t.shiftKey&&
!t.isComposing&&(t.preventDefault(),this.submit())}};var ct=class{constructor(t){this.view=t,t.root.addEventListener("keydown",e=>this.onKey(e),!0),t.root.setAttribute("aria\
-keyshortcuts","/ s w Escape")}onKey(t){t.ctrlKey||t.metaKey||t.altKey||t.isComposing||t.target instanceof Element&&(t.target.
closest("input, textarea, select, [contenteditable], .adknb-form")||this.handle(t.key)&&(t.preventDefault(),t.stopPropagation()))}handle(t){
let{tabs:e,tools:s}=this.view;if(t==="Escape")return this.view.leave(),!0;let i={"/":"events",s:"state",w:"waterfall"}[t],
r=e.panels.find(a=>a.name===i&&a.exists);return!r||!this.view.store.rows.size?!1:(this.view.unfold(),e.select(r,t!=="/"),
this.view.paint(),t==="/"&&s.filter.focus(),!0)}};var ut=class{constructor(t){this.store=t,this.nodes=new Map,this.node=o("ul","lanes"),this.node.setAttribute("aria-label",
"Working at once"),this.node.tabIndex=0}paint(){let{lanes:t,last:e,rows:s}=this.store;if(this.node.hidden=t.size<2,!this.
node.hidden)for(let i of t.values()){let r=this.words(s.get(e.get(i.id)??"")),a=`${i.state} ${r}`,l=this.nodes.get(i.id);
if(l?.drawn===a)continue;let[h,d]=J[i.state]??["",""],c=o("span","stands",o("span","icon",h),` ${d}`),u=o("li","lane",c,
o("span","author",i.label),o("span","words",r));u.dataset.mark=i.state,u.dataset.lane=String(this.color(i.id)),l?l.node.
replaceWith(u):this.node.append(u),this.nodes.set(i.id,{node:u,drawn:a})}}words(t){return t?t.kind==="call"?`⚙ ${t.tool}\
(${t.args}) ${t.result??t.text}`:t.text.trim().split(`
`).pop():""}color(t){return[...this.store.lanes.keys()].indexOf(t)%4}};var Rt=2e3;function R(n,t="",e=!0){if(n===null||typeof n!="object")return o("div","leaf",Pt(t),ds(n));let s=Array.isArray(
n)?n.map((d,c)=>[String(c),d]):Object.entries(n),[i,r]=Array.isArray(n)?"[]":"{}";if(!s.length)return o("div","leaf",Pt(
t),o("span","dim",i+r));let a=`${s.length} ${s.length===1?"entry":"entries"}`,l=o("details","branch",o("summary","",Pt(t),
o("span","dim",`${i} ${a} ${r}`))),h=()=>{l.childElementCount===1&&l.append(o("div","twigs",...s.map(([d,c])=>R(c,d,!1))))};
return l.addEventListener("toggle",()=>l.open&&h()),e&&h(),l.open=e,l}function Pt(n){return n===""?null:o("span","name",
`${n}: `)}function ds(n){let t=typeof n=="string"?n:JSON.stringify(n),e=o("span",typeof n=="string"?"string":"atom",t.slice(
0,Rt));if(t.length<=Rt)return e;let s=p(`… ${(t.length-Rt).toLocaleString("en")} more`,"small",()=>{e.textContent=t,s.
remove()});return o("span","",e," ",s)}var pt=class{constructor(t){this.store=t,this.node=o("div","state"),this.node.setAttribute("role","group"),this.node.setAttribute(
"aria-label","State"),this.node.tabIndex=0}paint(){let{state:t,cards:e}=this.store,s=t.some(a=>a.kind),i=[...e.values()].
some(a=>a.kind!=="wait"&&this.store.isOpen(a));if(this.node.hidden=!t.length||i&&!s,this.node.hidden)return;let r=o("div",
"pane-head","State",s?o("span","dim",this.store.box?" · changes since it began":" · changes this turn"):null);f(this.node,
r,...t.map(a=>qt(a.key,a.kind,a.old,a.value)))}};function qt(n,t,e,s){let[i,r]=[e,s].map(d=>U(d??"")),a=t==="~"?`${i} → ${r}`:
t==="-"?i:r,l=o("span","mark",t||" "),h=o("div","entry",l,o("span","key",n),o("span","value",a));return h.dataset.mark=t||
"",D[t]&&l.append(o("span","hidden",` ${D[t]}`)),h}var ft=class{constructor(t){this.store=t}exists(t){return!!(t.failure||t.detail||t.changes?.length||this.store.offers.includes(
"event"))}request(t){this.store.offers.includes("event")&&this.store.send({kind:"need",what:"event",id:t.id})}node(t){let e=(t.
changes??[]).map(i=>qt(i.key,i.kind,i.old,i.new)),s=this.store.panels.get(`event/${t.id}`);return o("div","detail",t.failure?
$e(t.failure):null,e.length?o("div","changes",o("div","dim","state changed by this event"),...e):null,...s?this.eventParts(
t,s):[t.detail&&!t.failure?o("pre","json",t.detail):null])}eventParts(t,e){let s=C("Copy JSON",()=>e.map(r=>JSON.stringify(
r,null,2)).join(`
`)),i=this.store.offers.includes("rerun")&&!this.store.gone&&this.store.status.status!=="running"?p("Rerun from here","s\
mall",()=>this.store.send({kind:"rerun",event:t.id.split("/")[0]})):null;return i&&(i.title="Ask again with the session \
as it was before this event; this conversation is kept"),[o("div","detail-buttons",s,i),...e.map((r,a)=>R(r,e.length>1?`\
event ${a+1}`:"event",a===e.length-1))]}};var Ht=3,mt=class{constructor(t,e){this.store=t,this.view=e,this.chosen=null,this.drawn=null,this.words=o("div","summary"),
this.node=o("div","over",this.words),this.button=p("","small fold",()=>{this.chosen=!this.folded,this.folded||e.events.toTop(),
e.stale=!0,e.paint()})}get isOver(){let{answer:t,status:e,box:s}=this.store;return!s&&t!==null&&e.status==="done"}get folded(){
return!this.isOver||[...this.store.cards.values()].some(t=>this.store.isOpen(t))?!1:this.chosen??!0}paint(){let{answer:t,
usage:e}=this.store;this.button.hidden=!this.isOver,this.button.textContent=`${this.folded?"▸":"▾"} ${this.line}`,this.
button.title=e.text,this.button.setAttribute("aria-expanded",String(!this.folded)),t&&this.folded&&this.drawn!==t&&(this.
drawn=t,f(this.words,this.question(t),...this.members(t),this.answer(t),this.failures())),this.#t(),this.node.hidden=!this.
folded||!(this.words.hasChildNodes()||this.hasGraph)}get hasGraph(){return this.folded&&this.store.drawing?.kind==="work\
flow"}#t(){let{picture:t}=this.view;this.node.toggleAttribute("data-graph",this.hasGraph),this.hasGraph&&t.node.parentNode!==
this.node&&this.node.prepend(t.node)}failures(){let t=[...this.store.rows.values()].filter(({kind:s,ok:i})=>s==="call"&&
i===!1);if(!t.length)return null;let e=t.slice(-Ht).map(({tool:s,args:i,result:r})=>`✗ ${s}(${i??""}) → ${r}`);return t.
length>Ht&&e.unshift(`${t.length-Ht} more failed, see the events`),o("ul","failed-calls",...e.map(s=>o("li","",s)))}get line(){
let{rows:t,earlier:e,status:s,usage:i}=this.store,r=[...t.values()].filter(l=>l.kind==="call").length;return[r?w(r,"tool\
 call"):w(t.size+e,"event"),s.seconds?cs(s.seconds):"",i.tokens?w(i.tokens,"token"):""].filter(Boolean).join(" · ")}question({
question:t}){return!t||Dt(z(this.store.manager,this.store.own_id),t)?null:o("div","asked",o("span","author","you"),At(o(
"div","text",t)))}members({members:t=[]}){return t.map(({who:e,text:s})=>o("div","asked member",o("span","author",e),o("\
div","text",s)))}answer({who:t,decisions:e="",html:s,pages:i,shown:r}){let a=[...this.store.cards.values()].some(ht),l=Q(
a?s:e+s,this.store.manager),h=H(r);if(l.append(...(i??[]).map(u=>_(u)),...h?[h]:[]),!l.hasChildNodes())return null;let d=t===
this.store.title?null:o("span","author",t),c=o("div","answered",d,At(l));return c.toggleAttribute("data-bare",!d),c}},cs=n=>n<
60?`${Math.max(n,.1).toFixed(1)} s`:I(n);function Dt(n,t){let e=s=>s.replace(/\s+/g," ").trim();return e(t)!==""&&e(n).includes(
e(t))}var Ft=n=>n.author==="user"?"you":n.author;function F(n){let t=Ft(n);return n.kind==="call"?`${t} ${n.tool}(${n.args}) ${n.
result??n.text}`.trim():`${t} ${n.kind==="text"||n.kind==="user"?"":`${n.kind}: `}${n.text.replace(/\s+/g," ")}`}var us=3,gt=class{constructor(t,e){this.store=t,this.view=e,this.nodes=new Map,this.open=new Set,this.dirty=new Set,this.
selected=null,this.reading=!1,this.longest=0,this.words="",this.source=void 0,this.details=new ft(t),this.earlier=o("div",
"earlier"),this.node=o("div","log",this.earlier),this.node.setAttribute("role","log"),this.node.setAttribute("aria-live",
"off"),this.node.setAttribute("aria-label","Events"),this.node.addEventListener("keydown",s=>this.onKey(s)),this.node.addEventListener(
"click",s=>this.onClick(s))}reset(){for(let t of this.store.rows.keys())this.mark(t)}touch(t){let e=t.id??t.row?.id;(t.failure??
t.row?.failure)&&this.open.add(e),t.op==="append"||t.op==="text"?this.dirty.add(e):t.op==="patch"?this.#t(t):t.op==="sta\
te"?this.mark(t.event):t.op==="panel"&&t.name==="event"?this.reread(t.id):t.op==="offers"?this.reset():t.op==="status"&&
this.#e()}#t(t){this.mark(t.id);let e=this.store.rows.get(t.id);e&&this.open.has(t.id)&&!t.failure&&this.details.request(
e)}#e(){for(let[t,{text:e,growing:s,waits:i}]of this.nodes)(e||s||i)&&this.mark(t);this.narrow(this.words)}reread(t){this.
reading=!0,this.mark(t)}mark(t){let e=this.nodes.get(t);e&&Object.assign(e,{text:null,growing:null}),this.dirty.add(t)}paint(){
let{node:t,store:e}=this,s=!this.reading&&t.scrollHeight-t.scrollTop-t.clientHeight<24;this.reading=!1;for(let r of this.
dirty)this.paintRow(e.rows.get(r),r);this.dirty.clear(),this.forget(),t.toggleAttribute("data-long",this.nodes.size>50),
this.earlier.textContent=e.earlier?`${e.earlier} earlier rows`:"",this.nodes.has(this.selected??"")||this.#s();let i=s&&
(e.box||e.status.status!=="done");return()=>{i&&(t.scrollTop=t.scrollHeight)}}#s(){let t=[...this.nodes].find(([,{node:e}])=>!e.
hidden);this.select(t?.[0]??null,!1)}forget(){if(this.nodes.size!==this.store.rows.size)for(let[t,{node:e}]of this.nodes)
this.store.rows.has(t)||(e.remove(),this.nodes.delete(t),this.open.delete(t))}paintRow(t,e){if(!t)return;let s=this.nodes.
get(e);if(s&&t.streaming&&this.#n(s,t))return;let i=s?.node??o("div","row");this.#o(i,t);let r=o("div","what"),a=t.streaming&&
Tt(t)?new Y(this.store.manager):null,l=a?null:this.fill(r,t);a&&r.append(a.node),a?.paint(t);let h=this.details.exists(t)?
this.disclosure(t):o("span","more"),d=this.numbers(t);f(i,h,this.author(t,s),r,d,this.detail(t)),s||this.node.append(i);
let c=t.kind==="call"&&t.result===null&&t.ok===null;this.nodes.set(e,{node:i,growing:a,text:t.streaming?l:null,length:t.
text.length,ms:d,waits:c})}#o(t,e){t.dataset.id=e.id,t.dataset.kind=e.kind,e.lane&&(t.dataset.lane=String(this.view.lanes.
color(e.lane))),t.tabIndex=e.id===this.selected?0:-1,t.setAttribute("aria-busy",String(!!e.streaming)),t.hidden=!this.fits(
e)||this.#i(e)}#n(t,e){if(t.growing)t.growing.paint(e);else if(t.text)t.text.appendData(e.text.slice(t.length)),t.length=
e.text.length;else return!1;return t.ms.textContent="",!0}tick(){for(let[t,{ms:e,waits:s}]of this.nodes){let i=this.store.
rows.get(t);if(!i||!(s||i.streaming))continue;let r=this.store.silence(t);s&&r>=1?e.textContent=I(r):i.streaming&&(e.textContent=
r>=us?`no text for ${I(r)}`:"")}}author(t,e){let s=Ft(t),i=o("span","author",s),r=e?e.node.previousElementSibling:this.node.
lastElementChild;return i.toggleAttribute("data-again",r?.querySelector(".adknb-author")?.textContent===s),i.title=s,s.length>
this.longest&&(this.longest=s.length,this.node.style.setProperty("--adknb-author-letters",String(s.length))),i}numbers(t){
let e=o("span","ms",g(t.ms));return t.usage&&(e.append(o("div","tokens",t.kind==="call"?`asked with ${t.usage.text}`:t.usage.
text)),e.title=t.usage.title),e}fill(t,e){if(e.kind==="call")return this.fillCall(t,e),null;if(e.kind==="error"&&t.append(
o("span","label bad","✗ ")),e.kind==="thought"&&t.append(o("span","label dim","thought ")),Tt(e)){let i=Q(e.html+(e.tail??
""),this.store.manager);return t.append(i,...(e.pages??[]).map(r=>_(r))),t.append(H(e.shown)??""),null}let s=document.createTextNode(
e.text);return t.append(o("span","text",s)),e.streaming&&t.append(o("span","caret","▌")),t.append(H(e.shown)??""),s}fillCall(t,e){
if(t.append(o("span","icon","⚙")," ",o("span","call",e.tool,"(",o("wbr",""),o("span","args",e.args),")")),e.text&&t.append(
" ",o("span","text",e.text)),e.result===null&&e.ok===null){this.store.status.status==="running"&&t.append(" ",o("span","\
dim","…"));return}let s=e.ok===!1?o("span","bad","✗ failed"):e.ok?o("span","good","✓"):null;t.append(" ",s??"→",
" ",o("span","result",e.result),H(e.shown)??"")}disclosure(t){let e=this.open.has(t.id),s=o("button","more",e?"▾":"▸");
return s.type="button",s.tabIndex=-1,s.setAttribute("aria-expanded",String(e)),s.setAttribute("aria-label","details"),s}detail(t){
return this.open.has(t.id)?this.details.node(t):null}toggle(t,e=!this.open.has(t)){let s=this.store.rows.get(t);!s||!this.
details.exists(s)||(e?this.open.add(t):this.open.delete(t),e&&this.details.request(s),this.reread(t),this.view.schedule())}narrow(t){
this.words=t.trim().toLowerCase();for(let[e,{node:s}]of this.nodes){let i=this.store.rows.get(e);s.hidden=!i||!this.fits(
i)||this.#i(i)}this.view.schedule()}fits(t){return!this.words||F(t).toLowerCase().includes(this.words)}matches(){return[
...this.store.rows.values()].filter(t=>this.fits(t))}#i(t){return t.kind!=="user"||t.author!=="user"||this.store.box||![
"running","pending"].includes(this.store.status.status)?!1:(this.source??=z(this.store.manager,this.store.own_id),Dt(this.
source,t.text))}toTop(){this.node.scrollTop=0}reveal(t){let e=[...this.nodes.keys()].findLast(s=>s===t||s.startsWith(`${t}\
/`));e&&(this.select(e),this.toggle(e,!0),this.nodes.get(e)?.node.scrollIntoView({block:"nearest"}))}select(t,e=!0){let s=this.
nodes.get(this.selected??"")?.node;s&&(s.tabIndex=-1),this.selected=t;let i=this.nodes.get(t??"")?.node;i&&(i.tabIndex=0,
e&&i.focus())}onClick(t){let{target:e}=t;if(!(e instanceof Element)||e.closest("a"))return;let s=e.closest(".adknb-row");
if(!(s instanceof HTMLElement)||!s.dataset.id)return;this.select(s.dataset.id,!!e.closest(".adknb-more"));let i=e.closest(
".adknb-detail");(e.closest("button")?!i:!i&&!String(getSelection()))&&this.toggle(s.dataset.id)}onKey(t){if(!(t.ctrlKey||
t.metaKey||t.altKey||t.shiftKey)){if(["Enter"," "].includes(t.key)&&t.target instanceof Element&&t.target.closest("a, .a\
dknb-detail")){t.stopPropagation();return}!this.#r(t.key)&&!this.#a(t.key)||(t.preventDefault(),t.stopPropagation())}}#r(t){
let e=[...this.nodes].filter(([,{node:r}])=>!r.hidden).map(([r])=>r),s=e.indexOf(this.selected??""),i={ArrowUp:s-1,ArrowDown:s+
1,Home:0,End:e.length-1};return t in i?(this.select(e[Math.min(e.length-1,Math.max(0,i[t]))]??null),!0):!1}#a(t){if(t===
"Escape")this.view.leave();else if(this.selected)if(t==="Enter")this.toggle(this.selected);else if(t==="ArrowRight")this.
toggle(this.selected,!0);else if(t==="ArrowLeft")this.toggle(this.selected,!1);else return!1;else return!1;return!0}};var bt=class{constructor(t,e){this.store=t,this.view=e,this.filter=o("input","input filter"),this.filter.type="search",this.
filter.placeholder="filter",this.filter.setAttribute("aria-label","Filter the events"),this.filter.addEventListener("inp\
ut",()=>e.events.narrow(this.filter.value)),this.filter.addEventListener("keydown",s=>{s.stopPropagation(),s.key==="Esca\
pe"&&(this.filter.value||e.leave(),this.filter.value="",e.events.narrow(""))}),this.count=o("span","dim found"),this.count.
setAttribute("role","status"),this.copy=C("Copy",()=>e.events.matches().map(F).join(`
`)),this.copy.title="Copy the log, as it is shown",this.save=p("⤓","small",()=>this.download()),this.save.title="Downl\
oad the events as JSON lines",this.save.setAttribute("aria-label",this.save.title),this.node=o("div","log-tools",this.count,
this.filter,this.copy,this.save)}paint(t,e){this.node.hidden=e||this.view.tabs.current!==this.view.log||!this.store.rows.
size,this.count.textContent=t===null?"":`${t} of ${this.store.rows.size}`}download(){this.waits=this.store.offers.includes(
"log")&&this.store.send({kind:"need",what:"log"}),this.waits||this.keep([...this.store.rows.values()].map(t=>JSON.stringify(
t)).join(`
`))}touch(t){t.op!=="panel"||t.name!=="log"||!this.waits||(this.waits=!1,this.keep(t.data))}keep(t){V("events.jsonl","ap\
plication/jsonl",`${t}
`)}};var wt=class{constructor(t){this.store=t,this.toggled=new Set,this.chips=o("span","chips"),this.node=o("div","notice"),this.
node.id=b(),this.node.setAttribute("role","note"),this.painted="[]"}paint(){let{notice:t,notices:e}=this.store,s=e.filter(
a=>this.#t(a)),i=[t,...s.map(({label:a,text:l})=>a?`${a}: ${l}`:l)].filter(Boolean);this.node.textContent=i.join(`
`),this.node.hidden=!i.length;let r=e.filter(({label:a})=>a);JSON.stringify(r)!==this.painted&&(this.painted=JSON.stringify(
r),this.chips.replaceChildren(...r.map(a=>this.#e(a))))}#t({label:t,folded:e}){return e===this.toggled.has(t)}#e(t){let{
label:e,text:s}=t,i=o("button","chip notice-chip",e);i.type="button",i.title=s,i.setAttribute("aria-controls",this.node.
id);let r=()=>i.setAttribute("aria-expanded",String(this.#t(t)));return i.addEventListener("click",()=>{this.toggled.delete(
e)||this.toggled.add(e),r(),this.paint()}),r(),i}};var Me=new Map;function x(n){Me.set(n.name,n)}function Te({name:n,title:t,module:e}){return e?{name:n,title:t,mount:(s,i)=>new Kt(
n,ps(e),s,i)}:Me.get(n)??null}var Ae=new Map;function ps(n){let t=Ae.get(n);if(t)return t;let e=URL.createObjectURL(new Blob(
[n],{type:"text/javascript"})),s=import(e).finally(()=>URL.revokeObjectURL(e));return Ae.set(n,s),s}var Kt=class{constructor(t,e,s,i){
this.root=s,this.view=je(t,i),this.render=void 0,e.then(r=>{this.render=r.default.render,i.repaint()},r=>f(s,o("div","pr\
oblem",`This panel could not be loaded: ${r}`)))}paint(t){t!==void 0&&this.render?.(this.root,t,this.view)}};function je(n,t){
let{store:e}=t;return{need:s=>new Promise(i=>{e.need(n,s,i)}),showEvent:s=>t.showEvent(s),get status(){return e.status.status}}}
var kt=class{constructor(t,e){this.panel=t,this.view=e,this.name=t.name,this.title=t.title,this.node=o("div",t.look??`pa\
nel ${t.name}`),this.node.tabIndex=0,this.request=new Jt(e.store,t.asks??t.name),this.part=t.mount?.(this.node,e)??{paint:s=>t.
render?.(this.node,s,je(t.name,e))}}get exists(){return this.panel.exists?.(this.view.store)??this.view.store.offers.includes(
this.name)}get isOffered(){let{offers:t,gone:e}=this.view.store;return this.panel.asks!==null&&!e&&t.includes(this.name)}opened(){
this.isOffered&&this.request.now(),this.part.opened?.()}touch(t){this.isOffered&&(this.panel.refresh??["append","patch",
"status"]).includes(t.op)&&this.request.soon(),this.part.touch?.(t)}closed(){this.request.cancel(),this.part.closed?.()}paint(){
try{this.part.paint(this.request.data)}catch(t){f(this.node,o("div","problem",`This panel failed: ${t}`))}}},Jt=class{constructor(t,e){
this.store=t,this.what=e,this.sent=0,this.timer=0}get data(){return this.store.panels.get(this.what)}now(){this.cancel(),
this.sent=performance.now(),this.store.send({kind:"need",what:this.what})}soon(){this.timer||=window.setTimeout(()=>this.
now(),Math.max(0,this.sent+1e3-performance.now()))}cancel(){clearTimeout(this.timer),this.timer=0}};var fs=new Set(["rect","path","text"]),ms=new Set("x y width height rx d fill fill-opacity stroke stroke-opacity stroke-\
dasharray text-anchor font-size font-weight".split(" "));function gs({width:n,height:t,shapes:e}){let s=v("svg",{width:n,
height:t,viewBox:`0 0 ${n} ${t}`});s.style.minWidth=`${Math.round(n*.65)}px`;for(let{tag:i,at:r,text:a,key:l}of e){if(!fs.
has(i))continue;let h=v(i,Object.fromEntries(Object.entries(r).filter(([d])=>ms.has(d))));h.dataset.key=l,h.textContent=
a,s.append(h)}return s}var vt=class{constructor(t){this.store=t,this.drawn=null,this.node=o("div","picture"),this.node.setAttribute(
"role","img"),this.node.tabIndex=0}followPath(){let t=this.node.getBoundingClientRect(),e=this.node.querySelector("rect:\
is([data-mark=now], [data-mark=waits]):not([fill=none])");if(!e)return;let s=e.getBoundingClientRect();(s.top<t.top||s.bottom>
t.bottom)&&(this.node.scrollTop+=(s.top+s.bottom-t.top-t.bottom)/2),(s.left<t.left||s.right>t.right)&&(this.node.scrollLeft+=
(s.left+s.right-t.left-t.right)/2)}paint(){let{drawing:t,marks:e}=this.store;if(this.node.hidden=!t,!!t){this.drawn!==t&&
(this.drawn=t,f(this.node,gs(t)));for(let s of this.node.querySelectorAll("svg > *"))s instanceof SVGElement&&this.#t(s,
e);this.node.setAttribute("aria-label",[t.title,...this.stateTexts()].join("; ")),this.followPath()}}#t(t,e){let{key:s=""}=t.
dataset,i=e[s.replace(/^s:/,"n:")]??"";(t.dataset.mark??"")!==i&&(t.dataset.mark=i,s.startsWith("s:")?t.textContent=J[i]?.[0]??
"":s.startsWith("c:")&&(t.textContent=i))}stateTexts(){let{drawing:t,marks:e}=this.store,s=(t?.shapes??[]).filter(({at:i,
key:r})=>i["font-weight"]&&r.startsWith("n:"));return Object.entries(J).flatMap(([i,[,r]])=>{let a=s.filter(({key:l})=>i!==
"was"&&e[l]===i).map(({text:l})=>l);return a.length?[`${r}: ${[...new Set(a)].join(", ")}`]:[]})}};var xt=class{constructor(t,e){this.panels=t,this.view=e,this.current=t[0],this.node=o("div","tabs"),this.node.setAttribute(
"role","tablist"),this.node.setAttribute("aria-label","Panels"),this.tabs=new Map(t.map(s=>[s,this.tab(s)])),this.node.append(
...this.tabs.values()),this.node.addEventListener("keydown",s=>this.onKey(s))}tab(t){let e=o("button","tab",t.title);return e.
type="button",e.id=b(),e.setAttribute("role","tab"),e.addEventListener("click",()=>this.select(t)),t.node.id=b(),t.node.
setAttribute("role","tabpanel"),t.node.setAttribute("aria-labelledby",e.id),e.setAttribute("aria-controls",t.node.id),e}select(t,e=!1){
this.current!==t&&this.current.closed(),this.current=t,this.paint(),t.opened(),t.paint(),this.view.schedule(),e&&this.tabs.
get(t)?.focus()}paint(){let t=this.panels.filter(e=>e.exists);t.includes(this.current)||(this.current=this.panels[0]);for(let[
e,s]of this.tabs)s.hidden=!t.includes(e),s.setAttribute("aria-selected",String(e===this.current)),s.tabIndex=e===this.current?
0:-1,e.node.hidden=e!==this.current;this.node.hidden=t.length<2}onKey(t){if(t.ctrlKey||t.metaKey||t.altKey||t.shiftKey)return;
let e=this.panels.filter(r=>this.tabs.get(r)?.hidden===!1),s=e.indexOf(this.current),i={ArrowLeft:s-1+e.length,ArrowRight:s+
1,Home:0,End:e.length-1};if(t.key in i)this.select(e[i[t.key]%e.length],!0);else if(t.key==="Escape")this.view.leave();else if(t.
key!=="Enter"&&t.key!==" ")return;t.key!=="Enter"&&t.key!==" "&&t.preventDefault(),t.stopPropagation()}};var yt=class{constructor(t,e,s){this.store=t,this.missed=new G(t,s),this.frame=0,this.stale=!0,this.stopping=!1,this.placed=
!1,this.title=o("span","title"),this.model=o("span","model dim"),this.status=o("span","status"),this.stop=p("Stop","stop",
()=>{this.stopping=!0,t.send({kind:"stop"}),this.repaint()}),this.notice=new wt(t),this.lanes=new ut(t),this.picture=new vt(
t),this.events=new gt(t,this),this.state=new pt(t),this.cards=new lt(t,this),this.foot=o("div","foot"),this.liveText=o("\
div","hidden"),this.liveText.setAttribute("role","status");let i=t.listed.map(Te).filter(r=>r!==null);this.tabs=new xt(i.
map(r=>new kt(r,this)),this),this.log=this.tabs.panels[0],this.tools=new bt(t,this),this.summary=new mt(t,this),this.bar=
o("div","bar",this.summary.button,this.tabs.node,this.tools.node),this.composer=t.box?new dt(t,this):null,this.announcer=
new et(t),this.root=this.#t(),this.keys=new ct(this),this.box=o("div","root",this.root),this.ticking=window.setInterval(
()=>this.#s(),1e3),e.append(this.box),this.reset()}#t(){let t=o("div","head",this.title,this.model,this.notice.chips,o("\
span","gap"),this.status,this.stop);for(let l of[t,this.bar])l.addEventListener("keydown",h=>h.stopPropagation());let e=this.
tabs.panels.map(({node:l})=>l),{answered:s,node:i}=this.cards,r=[s,this.summary.node,this.bar,this.lanes.node,...e,i,this.
composer?.node,this.foot],a=o("div","view",t,this.notice.node,...r,this.liveText,this.announcer.node);return this.store.
box&&(a.dataset.box="",a.style.setProperty("--adknb-height",`${this.store.box.height}px`)),a}reset(){this.events.reset(),
this.missed.ask(),this.stale=!0,this.schedule()}touch(t){this.events.touch(t),this.announcer.touch(t),this.missed.touch(
t),t.op==="status"&&(this.stopping=!1),this.composer?.touch(t),t.op==="panel"&&(this.stale=!0);for(let e of[this.tabs.current,
this.tools])e.touch?.(t);(this.log.node.hidden||t.op!=="append"&&t.op!=="text")&&(this.stale=!0),this.schedule()}schedule(){
this.frame||=requestAnimationFrame(()=>{this.frame=0,this.paint()})}paint(){this.placed||=this.box.isConnected;let t=this.
events.paint();this.lanes.paint(),this.stale&&this.paintFrame(),this.stale=!1,this.lanes.node.hidden||=this.summary.folded,
this.tools.paint(this.events.words?this.events.matches().length:null,this.summary.folded),t()}paintFrame(){let{store:t}=this;
this.title.textContent=t.title,this.model.textContent=t.modelName,this.model.hidden=!t.modelName,this.root.dataset.status=
t.status.status,this.#e(),this.notice.paint(),this.summary.paint(),this.tabs.paint();let{folded:e}=this.summary;this.foot.
textContent=t.usage.text,this.foot.title=t.usage.title??"",this.foot.hidden=!t.usage.text||e;let s=!(t.rows.size||t.state.
length||t.drawing);if(this.bar.hidden=s,this.bar.toggleAttribute("data-folded",e),e||s)for(let i of this.tabs.panels)i.node.
hidden=!0;this.tabs.node.hidden||=e,this.picture.paint(),this.state.paint(),!e&&!s&&this.tabs.current.paint(),this.cards.
paint(),this.composer?.paint()}#e(){let{status:t,box:e,rows:s,seconds:i}=this.store,[r,a]=le[t.status]??["",t.status],l=t.
status==="running",h=e?0:[...s.values()].filter(u=>u.kind==="call"&&u.ok===!1).length,d=l&&i>=1?o("span","elapsed",` · ${I(
i)}`):null,c=h?`, ${w(h,"tool")} failed`:"";f(this.status,o("span","icon",r),` ${t.text||a}${c}`,d),this.root.toggleAttribute(
"data-failed",h>0),this.stop.hidden=!l,this.stop.disabled=this.stopping,this.stop.textContent=this.stopping?"Stopping…":
"Stop"}#s(){this.store.status.status!=="running"||!this.box.isConnected||(this.#e(),this.events.tick())}repaint(){this.stale=
!0,this.schedule()}showEvent(t){this.tabs.select(this.log),this.events.reveal(t)}unfold(){this.summary.chosen=!1,this.stale=
!0,this.paint()}leave(){let t=this.box.closest(".jp-Cell");document.activeElement instanceof HTMLElement&&document.activeElement.
blur(),t instanceof HTMLElement&&t.focus({preventScroll:!0})}get isOrphan(){return this.placed&&!this.box.isConnected&&!this.
box.closest(".jp-OutputArea")}moveTo(t){t.append(this.box),this.reset()}remove(){cancelAnimationFrame(this.frame),clearInterval(
this.ticking),this.cards.steady.stop();for(let t of this.tabs.panels)t.closed();this.store.views.delete(this),this.box.remove()}};x({name:"events",title:"Events",look:"panes",asks:null,exists:()=>!0,mount(n,t){return n.removeAttribute("tabindex"),n.append(
t.picture.node,t.events.node,t.state.node),{paint(){t.picture.node.parentNode!==n&&t.events.node.before(t.picture.node)}}}});var Wt=400,$t=22,St={agent:["▸","agent"],model:["◆","model"],tool:["⚙","tool"],person:["⚠","person"]},Ut=class{constructor(t,e){
this.root=t,this.view=e,this.data=[],this.bars=[],this.picture=o("div","bars"),this.table=o("details","twin-table",o("su\
mmary","","As a table")),this.table.addEventListener("toggle",()=>this.paintTable()),t.append(this.picture,this.table),this.
drawn="",new ResizeObserver(()=>this.paint(this.data)).observe(t)}paint(t=[]){this.data=t;let e=this.root.clientWidth-24,
s=`${e} ${JSON.stringify(t)}`;if(this.root.hidden||e<=0||s===this.drawn)return;this.drawn=s,this.bars=t.slice(-Wt);let i=t.
length>Wt?o("div","dim",`${t.length-Wt} earlier bars`):null;t.length?f(this.picture,i,this.draw(this.bars,e)):f(this.picture,
o("div","dim","Nothing has been timed yet.")),this.table.hidden=!t.length,this.paintTable()}draw(t,e){let s=Math.max(1,...t.
map(u=>Math.max(u.begin,u.end??0))),i=Math.min(...t.map(u=>u.begin))>=s?0:Math.min(...t.map(u=>u.begin)),r=Math.min(230,
Math.round(e*.34)),a=e-r-62,l=u=>r+(u-i)/(s-i||1)*a,h=t.length*$t+22,d=v("svg",{width:e,height:h,viewBox:`0 0 ${e} ${h}`,
role:"img"});d.setAttribute("aria-label",`${t.length} bars over ${g(s-i)}; the table below says the same`);let c=u=>s-i<
1e3?g(u):`${(u/1e3).toFixed(1)} s`;for(let u of bs(i,s,Math.max(2,Math.floor(a/90))))d.append(v("path",{class:"adknb-gri\
d",d:`M${l(u)} 16V${h}`})),d.append(v("text",{class:"adknb-tick",x:l(u),y:11,"text-anchor":"middle"},c(u-i)));return d.append(
...t.map((u,m)=>this.bar(u,20+m*$t,l,s,r,e))),d}bar(t,e,s,i,r,a){let[l,h]=[s(t.begin),Math.max(s(t.end??i),s(t.begin)+2)],
d=v("g",{class:"adknb-bar","data-kind":t.kind});t.error&&d.setAttribute("data-mark","failed");let c=4+Math.min(t.depth,8)*
12,u=Math.floor((r-c-8)/6.6),m=`${t.error?"✗":St[t.kind]?.[0]??""} ${t.name}`;d.append(v("title",{},ws(t))),d.append(v(
"rect",{class:"adknb-hit",x:0,y:e,width:a,height:$t})),d.append(v("text",{x:c,y:e+15},m.length>u?`${m.slice(0,Math.max(1,
u-1))}…`:m));let M=t.kind==="agent"?6:12,y=(T,Ot,j)=>v("rect",{class:`adknb-${j}`,x:T,y:e+($t-M)/2,width:Math.max(1,Ot-
T),height:M,rx:2}),O=t.first===null?null:s(t.first);O===null?d.append(y(l,h,t.kind==="model"?"waits":"work")):d.append(y(
l,O,"waits"),y(O,h,"work"));let S=t.end===null?"…":g(t.end-t.begin);d.append(v("text",{class:"adknb-taken",x:h+5,y:e+15},
S));let{event:P}=t;return P&&d.addEventListener("click",()=>this.view.showEvent(P)),d}paintTable(){if(!this.table.open)return;
let t=o("tr","",...["what","name","of","begins","first piece","takes"].map(s=>o("th","",s))),e=this.bars.map(s=>o("tr","",
...[s.error?`${St[s.kind]?.[1]} ✗ ${s.error}`:St[s.kind]?.[1]??s.kind,s.name,s.agent,g(s.begin)||"0",s.first===null?"":
g(s.first-s.begin),s.end===null?Le(s):g(s.end-s.begin)].map(i=>o("td","",i))));this.table.querySelector("table")?.remove(),
this.table.append(o("table","table",o("thead","",t),o("tbody","",...e)))}};function bs(n,t,e){let s=(t-n)/e,i=10**Math.floor(
Math.log10(s||1)),r=[1,2,5,10].map(l=>l*i).find(l=>l>=.8*s)??s,a=Math.max(r,t-n<1e3?1:100);return Array.from({length:Math.
floor((t-n)/a)+1},(l,h)=>n+h*a)}function Le(n){return n.kind==="person"?"still waits":"still at work"}function ws(n){let t=n.
end===null?Le(n):`took ${g(n.end-n.begin)}`,e=n.first===null?"":`, first piece after ${g(n.first-n.begin)}`,s=`${St[n.kind]?.[1]??
n.kind} ${n.name}: began at ${g(n.begin)||"0 ms"}, ${t}${e}`;return n.error?`${s}; ${n.error}`:s}x({name:"waterfall",title:"\
Waterfall",mount:(n,t)=>new Ut(n,t)});var ks={user:"of this user",app:"of all",temp:"of this turn"},zt=class{constructor(t,e){this.store=e.store,this.whole=void 0,
this.editing=null,this.sent=null,this.drawn=null,this.choices="",this.against=o("select","input"),this.against.setAttribute(
"aria-label","Compare with"),this.against.addEventListener("change",()=>this.paint(this.whole)),this.against.addEventListener(
"keydown",s=>s.stopPropagation()),this.add=p("Add a key","small",()=>this.edit("")),this.problem=o("div","problem"),this.
problem.setAttribute("role","alert"),this.rows=o("div","keys"),this.head=o("div","panel-head",this.against,this.add,this.
problem),t.append(this.head,this.rows)}get mayEdit(){return this.store.offers.includes("state")&&!this.store.gone}closed(){
this.edit(null)}touch(t){t.op!=="panel"||t.name!=="refused"||t.id!==this.sent||(this.problem.textContent=t.data,t.data||
this.edit(null))}edit(t){this.editing=t,this.sent=null,this.problem.textContent="",this.drawn=null,this.head.append(this.
problem),t!==null&&this.paint(this.whole)}paint(t){this.whole=t;let e=[...this.store.rows.values()].filter(c=>c.changes?.
length).slice(-100),s=[["",this.store.box?"changes since it began":"changes this turn"],...e.map(c=>[c.id,`changes by: ${F(
c).slice(0,70)}`])],i=JSON.stringify(s);if(i!==this.choices){let c=this.against.value;this.choices=i,f(this.against,...s.
map(([u,m])=>Object.assign(o("option","",m),{value:u}))),this.against.value=s.some(([u])=>u===c)?c:""}this.add.hidden=!this.
mayEdit;let r=this.store.rows.get(this.against.value),a=r?(r.changes??[]).map(c=>({...c,value:c.new})):this.store.state,
l=JSON.stringify([a,this.editing,this.mayEdit,t]);if(l===this.drawn||this.editing!==null&&this.drawn)return;this.drawn=l;
let h=this.editing===""?this.form("",""):null;f(this.rows,h,...a.map(c=>this.row(c,!r)));let d=this.rows.querySelector("\
input, textarea");d instanceof HTMLElement&&d.focus()}row(t,e){let{key:s,kind:i}=t,r=i==="-",a=e&&!r?this.whole?.find(m=>m.
key===s)?.json:void 0;if(s===this.editing&&e)return this.form(s,a??"");let[l,h]=xs(s),d=o("span","chip",l);d.title=ks[l]??
"of this session",d.dataset.scope=l;let c=o("span","mark",i||" ",D[i]?o("span","hidden",D[i]):null),u=o("div","key-row",
c,d,o("div","key-name",h),vs(t,a));return u.dataset.mark=i,e&&!r&&l!=="temp"&&this.mayEdit&&u.append(this.buttons(s)),u}buttons(t){
let e=p("Edit","small",()=>this.edit(t));e.setAttribute("aria-label",`Edit ${t}`);let s=p("Delete","small",()=>this.send(
{kind:"state",key:t,text:null}));return s.setAttribute("aria-label",`Delete ${t}`),o("div","key-buttons",e,s)}form(t,e){
let s=t?null:this.input("Key","name, user:name or app:name",""),i=this.input("Value","JSON, or else text",e),r=()=>this.
send({kind:"state",key:t||(s?.value.trim()??""),text:i.value}),a=()=>{this.edit(null),this.paint(this.whole)},l=o("div",
"key-form",t?o("b","",t):s,i,p("Save","go small",r),p("Cancel","small",a),this.problem);return l.addEventListener("keydo\
wn",h=>{h.stopPropagation(),h.key==="Escape"?a():h.key==="Enter"&&!h.shiftKey&&!h.isComposing&&!(h.target instanceof HTMLButtonElement)&&
(h.preventDefault(),r())}),l}input(t,e,s){let i=o(s.includes(`
`)?"textarea":"input","input");return i.value=s,i.placeholder=e,i.setAttribute("aria-label",`${t} (${e})`),i}send(t){this.
sent=t.key,this.problem.textContent=t.key?"":"the key has no name",t.key&&this.store.send(t)}};function vs({kind:n,old:t,
value:e},s){let i=n==="-",r=n==="~"||i?o("div","was",o("span","hidden","was "),U(t??"")):null;return o("div","values",r,
i?null:o("div","value",U(s??e??"")))}function xs(n){let t=n.indexOf(":");return t<0?["session",n]:[n.slice(0,t),n.slice(
t+1)]}x({name:"state",title:"State",look:"panel state-table",refresh:["state"],exists:n=>n.state.length>0,mount:(n,t)=>new zt(
n,t)});x({name:"graph",title:"Graph",asks:null,exists:n=>!!n.drawing,mount(n,t){let e=o("div","dim standing");return n.removeAttribute(
"tabindex"),n.append(e),{paint(){t.picture.node.parentNode!==n&&e.before(t.picture.node),e.textContent=t.picture.stateTexts().
join(" · ")}}}});var Vt=class{constructor(t,e){this.store=e.store,this.calls=[],this.chosen=null,this.drawn=null,this.labels="",this.which=
o("select","input"),this.which.setAttribute("aria-label","Model call"),this.which.addEventListener("change",()=>{this.chosen=
Number(this.which.value),this.want(),this.paint(this.calls)}),this.which.addEventListener("keydown",s=>s.stopPropagation()),
this.body=o("div","prompt-body"),t.append(o("div","prompt-head",this.which),this.body)}touch(t){t.op!=="panel"||t.name!==
"prompts"||(this.calls=t.data,this.want())}get at(){let t=this.calls.length-1;return this.chosen===null?t:Math.min(this.
chosen,t)}want(){this.at>=0&&this.store.send({kind:"need",what:"prompt",id:String(this.at)})}paint(t=[]){this.calls=t;let e=t.
map(({agent:r,model:a,ms:l,tokens:h},d)=>[`${d+1} of ${t.length}`,r,a,h?w(h,"token"):"",g(l)].filter(Boolean).join(" · "));
this.labels!==e.join(`
`)&&(this.labels=e.join(`
`),f(this.which,...e.map((r,a)=>Object.assign(o("option","",r),{value:String(a)})))),this.which.hidden=!t.length,t.length&&
(this.which.value=String(this.at));let s=this.store.panels.get(`prompt/${this.at}`),i=JSON.stringify([t.length,s]);i!==this.
drawn&&(this.drawn=i,t.length?s?f(this.body,...this.call(s)):f(this.body,o("div","dim","…")):f(this.body,o("div","dim",
"No model has been asked yet.")))}call(t){let e=Object.entries(t.tokens).map(([r,a])=>`${Number(a).toLocaleString("en")}\
 ${r}`).join(", "),s=[g(t.ms),t.first_ms===null?"":`first piece after ${g(t.first_ms)}`],i=[t.model,e&&`tokens: ${e}`,...s].
filter(Boolean).join(" · ");return[o("div","dim facts",i),t.error?o("div","problem",`✗ ${t.error}`):null,o("div","par\
ts",...ys(t).map(As)),$s(t)]}};function ys(n){let{same:t}=n,e=Qt(n.system),s=new Map(n.system.filter(({source:d})=>d).map(
Os)),i=n.history.slice(t.history),r=w(n.messages,"message"),a=Object.keys(n.settings??{}).length,l=n.raw?Gt(n.raw):"";return[
e&&{title:"System instruction",size:w(e.length,"character"),text:()=>e,content:()=>[o("div","sent",...n.system.flatMap(Yt))],
open:e.length<=Ss&&!t.call},s.size&&{title:"Inserted values",size:w(s.size,"value"),text:()=>[...s].map(([d,c])=>`${d}	${c}`).
join(`
`),content:()=>[...s].map(([d,c])=>o("div","sent",`${d} → `,...Yt({text:c,source:d})))},n.tools.length&&{title:"Tools",
size:String(n.tools.length),text:()=>Gt(n.tools),content:()=>n.tools.map(Ms)},a&&{title:"Settings",size:String(a),text:()=>Gt(
n.settings),content:()=>[R(n.settings)]},i.length&&{title:"History",size:t.messages?`${n.messages-t.messages} new of ${r}`:
r,text:()=>Ce(i),content:()=>Ne(i)},n.answer.length&&{title:"Answer",size:Es(n.answer),text:()=>Ce(n.answer),content:()=>Ne(
n.answer),open:!0},l&&{title:"Raw response",size:w(l.length,"character"),text:()=>l,content:()=>[R(n.raw)]}].map(d=>d||null).
flatMap(d=>d&&!t.parts.includes(d.title.toLowerCase())?[d]:[])}function $s({same:n,system:t,tools:e,settings:s}){let i={
"system instruction":t.length,tools:e.length,settings:Object.keys(s??{}).length},r=Object.entries(i).flatMap(([a,l])=>l&&
n.parts.includes(a)?[a]:[]);return n.messages&&r.push(`the first ${w(n.messages,"message")}`),r.length?o("div","dim same",
`as in model call ${n.call}: ${r.join(", ")}`):null}var Ss=1500,Gt=n=>JSON.stringify(n,null,2),Qt=n=>n.map(({text:t})=>t).
join(""),Os=({text:n,source:t})=>[t,n],Ce=n=>n.map(({role:t,text:e})=>`${t}: ${Qt(e)}`).join(`
`);function Es(n){let t=n.filter(({kind:s})=>s==="call").length,e=n.flatMap(({kind:s,text:i})=>s==="text"?Qt(i):"").join(
"").length;return[t?w(t,"call"):"",e?w(e,"character"):""].filter(Boolean).join(", ")}function As({title:n,size:t,text:e,
content:s,open:i=!1}){let r=o("summary","",o("b","part-name",n)," ",o("span","dim",t)),a=o("details","part",r),l=()=>{if(a.
childElementCount>1)return;let h=C("Copy",e);h.classList.add("adknb-part-copy"),h.setAttribute("aria-label",`Copy ${n.toLowerCase()}`),
a.append(h,...s().map(d=>d??""))};return a.addEventListener("toggle",()=>a.open&&l()),i&&l(),a.open=i,a}function Yt({text:n,
source:t}){if(!t)return[n];let e=o("mark","put",o("span","hidden",`put in for ${t}: `),n||"(nothing)",o("span","source",
t));return e.title=`put in for ${t}`,[e]}function Ms({name:n,description:t,parameters:e}){return o("div","tool-sent",o("\
div","call",n),o("div","dim",t),e?R(e,"parameters",!1):null)}function Ne(n){return n.map(({role:t,kind:e,text:s})=>{let i=o(
"div","said",o("span","role",t),o("span","dim",e),o("div","sent",...s.flatMap(Yt)));return i.dataset.kind=e,i})}x({name:"\
prompt",title:"Prompt",asks:"prompts",refresh:["patch","status"],mount:(n,t)=>new Vt(n,t)});var Xt=class{constructor(t,e){this.store=e.store,this.root=t,this.requested=new Set,this.nodes=new Map}opened(){for(let t of this.
store.artifacts.keys())this.requested.has(t)||(this.requested.add(t),this.store.send({kind:"need",what:"artifact",id:t}))}touch(t){
t.op==="artifact"&&this.opened()}paint(){for(let t of this.store.artifacts.values()){let e=this.store.panels.get(`artifa\
ct/${t.id}`),s=this.nodes.get(t.id);if(s&&s.drawn===e)continue;let i=this.artifact({...t,...e},!!e);s?s.node.replaceWith(
i):this.root.append(i),this.nodes.set(t.id,{node:i,drawn:e})}}artifact(t,e){let s=`version ${t.version} · ${t.mime} · ${Ts(
t.size)}`,i=o("div","artifact-head",o("b","",t.name),o("span","dim",s)),{data:r,name:a,mime:l}=t;if(r){let d=p("Download",
"small",()=>V(a.split("/").pop()??a,l,js(r)));d.setAttribute("aria-label",`Download ${a}`),i.append(d)}let h=e?this.content(
t):o("div","dim","…");return o("div","artifact",i,h)}content(t){return t.image?jt(t.image,t.alt):t.html?o("div","html",
N(t.html)):t.page?_(t.page,t.alt):t.text?o("pre","json",t.text):o("div","dim",t.data?"Nothing that a page can show; it c\
an be downloaded.":"Too large for a page.")}};function Ts(n){return n<1e3?`${n} bytes`:n<1e6?`${(n/1e3).toFixed(1)} kB`:
`${(n/1e6).toFixed(1)} MB`}function js(n){return Uint8Array.from(atob(n),t=>t.charCodeAt(0))}x({name:"artifacts",title:"\
Artifacts",asks:null,exists:n=>n.artifacts.size>0,mount:(n,t)=>new Xt(n,t)});function Zi(n,t=[]){if(n.get("html")!==void 0)return{show:i=>ae(n,i)};let e=new tt(n);for(let i of t)e.receive(i);let s=new Set;
return se(e.own_id,n.widget_manager),{show(i){let r=[...s].find(l=>l.isOrphan);r?.moveTo(i);let a=r??new yt(e,i,n.widget_manager);
return s.add(a),e.views.add(a),e.send({kind:"page",stays:q(n.widget_manager)}),e.send({kind:"resync"}),()=>{s.delete(a),
a.remove()}}}}export{Zi as open,x as registerPanel};
