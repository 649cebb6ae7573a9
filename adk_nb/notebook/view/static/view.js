var $="application/vnd.jupyter.widget-view+json",D=i=>i.metadata?.[$]?.adk_nb,mt="<p><em>This notebook is not trusted, s\
o the live view is not drawn here. Run <code>%confirm</code> to get its card in a new cell, or run the command “Trust No\
tebook”.</em></p>";function ae(i){let t=D(i);if(!t)return i;let{[$]:e,...s}=i.data;typeof s["text/html"]=="string"&&(s["\
text/html"]=s["text/html"].replace(mt,""));let{[$]:n,...r}=i.metadata;return t==="run"&&e&&(r.adk_nb={view:e.model_id}),
{...i,data:s,metadata:r}}function E(i){let t=i?.context?.model;return typeof t?.toJSON=="function"&&!t.collaborative?t:null}
function le(i,t){let{path:e,sessionContext:s}=i.context,n=t.flatMap(({id:r,outputs:a=[]})=>a.flatMap((l,h)=>D(l)==="page"?
[[r,h,l.data[$]?.model_id]]:[]));try{localStorage.setItem(`adk_nb:${e}`,JSON.stringify({kernel:s.session?.kernel?.id,views:n}))}catch{}}
function Bt(i,t,e,s){let{path:n,sessionContext:r}=i.context;try{let{kernel:a,views:l}=JSON.parse(localStorage.getItem(`a\
dk_nb:${n}`));return a===r.session?.kernel?.id&&l.some(h=>`${h}`==`${[e,s,t]}`)}catch{return!1}}function J(i){let t=E(i),
e=Symbol.for("adk_nb.kept_out");if(!t||t[e])return!!t;t[e]=!0;let s=t.toJSON.bind(t);return t.toJSON=()=>{let n=s();le(i,
n.cells);let r=n.cells.map(a=>a.outputs?{...a,outputs:a.outputs.map(ae)}:a);return{...n,cells:r}},!0}function Rt(i,t){let e=[];for(let{id:s,outputs:n}of i.cells)for(let r=0;r<(n?.length??0);r+=1)t(n.get(r),s,r)&&e.push([n,
r]);return e}async function It(i,t){let e=E(t);if(!e)return;J(t),await t.context.ready;let{dirty:s}=e,n=({metadata:a})=>a?.
adk_nb?.view===i,r=(a,l,h)=>n(a)||!D(a)&&Bt(t,i,l,h);for(let[a,l]of Rt(e,r)){let{adk_nb:h,...d}=a.get(l).metadata,u=n(a.
get(l))?"run":"page",c={version_major:2,version_minor:0,model_id:i},m={...a.get(l).data,[$]:c};u==="run"&&!a.trusted&&(m["\
text/html"]=`${m["text/html"]??""}${mt}`),a.set(l,{...a.get(l).toJSON(),data:m,metadata:{...d,[$]:{adk_nb:u}}})}e.dirty=
s}var W=class{constructor(t,e){this.store=t,this.manager=e}get page(){return this.manager?.context?.sessionContext?.session?.
kernel?.clientId}get known(){return E(this.manager)[Symbol.for("adk_nb.put_here")]??=new Set}get late(){return this.store.
late||this.known.has(this.store.own_id)}ask(t=["idle","running","pending"]){let{gone:e,status:s}=this.store;e||!E(this.manager)||
!this.late||t.includes(s.status)||this.page&&this.store.say({kind:"need",what:"missed",id:this.page})}touch(t){t.op==="s\
tatus"&&this.ask(["idle","running"]),!(t.op!=="panel"||!this.page||!E(this.manager))&&(t.name==="missed"&&t.id===this.page&&
queueMicrotask(()=>this.put(t.data,e=>D(e)!=="page")),t.name==="beside"&&t.id!==this.page&&queueMicrotask(()=>this.putBeside(
t.data)))}putBeside(t){t.some(({data:e})=>this.known.has(e[$].model_id))||this.put(t,()=>!0)}put(t,e){let[s,n]=this.place(
e);for(let{at:r,data:a,metadata:l}of s?t:[]){a[$]&&this.known.add(a[$].model_id);let h={output_type:"display_data",data:a,
metadata:l};r===null?s.add(h):n+r<s.length&&s.set(n+r,h)}}place(t){let e=s=>s.data[$]?.model_id===this.store.own_id&&t(s);
return Rt(E(this.manager),e)[0]??[]}};var H=class{constructor(){this.title="",this.own_id="",this.box=null,this.seq=0,this.status={status:"idle",text:""},this.
notice="",this.usage={text:""},this.earlier=0,this.state=[],this.drawing=null,this.marks={},this.offers=[],this.answer=null,
this.rows=new Map,this.cards=new Map,this.lanes=new Map,this.artifacts=new Map,this.last=new Map}load(t){let{rows:e,cards:s,
lanes:n,artifacts:r=[],...a}=t;Object.assign(this,a),this.rows=new Map(e.map(l=>[l.id,{...l}])),this.lanes=new Map(n.map(
l=>[l.id,l])),this.cards=new Map(s.map(l=>[l.id,l])),this.artifacts=new Map(r.map(l=>[l.id,l])),this.last=new Map;for(let l of e)
this.#t(l)}apply(t){let e=t.id??t.event,s=e===void 0?void 0:this.rows.get(e);he[t.op]?.(this,t,s),(t.op==="append"||t.op===
"text"||t.op==="patch")&&this.#t(this.rows.get(t.id??t.row?.id))}merged(t){let e=new Map(this.state.map(n=>[n.key,n]));for(let n of t)
e.set(n.key,n);let s=[...e.values()].filter(n=>n.kind||n.value!==null);return[...s.filter(n=>n.kind!=="-"),...s.filter(n=>n.
kind==="-")]}#t(t){if(t?.lane)for(let e of this.lanes.keys())(t.lane===e||t.lane.startsWith(`${e}.`))&&this.last.set(e,t.
id)}},he={append(i,{row:t}){i.rows.set(t.id,{...t});for(let e of i.rows.keys()){if(i.rows.size<=1e3)break;i.rows.delete(
e),i.earlier+=1}},text(i,t,e){e&&(e.text+=t.s,e.streaming=!0,t.tail!==void 0&&Object.assign(e,{html:e.html+t.html,tail:t.
tail}))},patch(i,{op:t,...e},s){s&&Object.assign(s,{streaming:!1,tail:""},e)},state(i,t,e){i.state=t.state??i.merged(t.entries),
e&&(e.changes=[...e.changes??[],...t.changes])},card:(i,{card:t})=>{i.cards.set(t.id,t)},status(i,{status:t,text:e=""}){
if(i.status={status:t,text:e},t!=="running")for(let s of i.rows.values())s.streaming=!1},usage(i,{text:t,title:e=""}){i.
usage={text:t,title:e}},notice(i,{text:t}){i.notice=t},drawing(i,{drawing:t}){i.drawing=t},mark(i,{marks:t}){i.marks={...i.
marks,...t}},lane:(i,{lane:t})=>{i.lanes.set(t.id,t)},artifact:(i,{artifact:t})=>{i.artifacts.set(t.id,t)},offers(i,{what:t}){
i.offers=t},answer(i,{answer:t}){i.answer=t}};var qt={idle:["○","idle"],running:["●","running"],pending:["⚠","waiting"],done:["✓","done"],error:["✗","error"],
cancelled:["■","stopped"]},Dt={approved:["✓","approved"],edited:["✎","approved with changes"],rejected:["✗","rej\
ected"],answered:["✓","You answered"],reasked:["↻","asked anew"],given:["✓","answered"],refused:["✗","refused"],
superseded:["–","no longer asked"],retried:["↻","said again"],dropped:["✓","taken back"],over:["–","the conversa\
tion went on"],stale:["–","stale"]},K={now:["●","works"],waits:["⚠","waits"],was:["✓","done"],failed:["✗","fai\
led"],stopped:["■","stopped"]},Kt="What waits in a session that is kept in a file is asked again by %confirm; else run\
 the cell again.",T={"+":"added","~":"changed","-":"removed"};function b(i){if(i==null)return"";if(i<1e3)return`${Math.round(
i)} ms`;let t=i/1e3;return t<60?`${t.toFixed(1)} s`:`${Math.floor(t/60)} min ${Math.round(t%60)} s`}function U(i){return i==
null?"nothing":w(JSON.stringify(i))}var Ft=i=>i.replace(/[^ -~]/g,Jt),Jt=i=>`\\u${i.charCodeAt(0).toString(16).padStart(
4,"0")}`,de=/(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;
function w(i){return i.replace(de,(t,e)=>e??t.split("").map(Jt).join(""))}var F=(i,t)=>JSON.stringify(i)===JSON.stringify(
t);var z=class extends H{constructor(t){super(),this.model=t,this.manager=t.widget_manager,this.listed=t.get("panels"),this.
views=new Set,this.sent=new Map,this.panels=new Map,this.needed=new Map,this.ahead=new Map,this.gone=!1;let e=t.get("sna\
pshot");this.late=e.seq>0,this.load(e),t.on("change:snapshot",()=>this.adopt(t.get("snapshot"))),t.on("msg:custom",s=>this.
receive(s)),t.on("comm_live_update",()=>this.say({kind:"resync"}))}need(t,e,s){let n=`${t}/${e}`;this.panels.has(n)?s(this.
panels.get(n)):this.say({kind:"need",what:t,id:e})&&this.needed.set(n,s)}adopt(t){if(!(t.seq<=this.seq)){this.load(t),this.
gone=!1,this.#t();for(let e of this.views)e.reset()}}receive(t){t.kind!=="ops"||t.seq<=this.seq||(this.ahead.set(t.seq,t.
ops),this.#t(),this.ahead.size&&this.say({kind:"resync"}))}#t(){for(let t of this.ahead.keys())t<=this.seq&&this.ahead.delete(
t);for(let t=this.ahead.get(this.seq+1);t;t=this.ahead.get(this.seq+1)){this.seq+=1;for(let e of t)this.#e(e);this.ahead.
delete(this.seq)}}#e(t){if(this.apply(t),t.op==="panel"){let e=t.id?`${t.name}/${t.id}`:t.name;this.panels.set(e,t.data),
this.needed.get(e)?.(t.data),this.needed.delete(e)}for(let e of this.views)e.touch(t)}isOpen(t){return t.state==="asked"&&
this.sent.get(t.id)!==t.again}say(t){try{return this.model.send(t),!0}catch{return this.#s(),!1}}#s(){this.gone=!0,this.
notice=`The kernel that ran this is gone. ${Kt}`,["running","pending"].includes(this.status.status)&&(this.status={status:"\
cancelled",text:"stale"});for(let t of this.cards.values())t.state==="asked"&&Object.assign(t,{state:"stale",note:"its k\
ernel is gone"});for(let t of this.views)t.reset()}decide(t,e,s){if(this.isOpen(t)){this.say({kind:"answer",id:t.id,decision:e,
...s})&&this.sent.set(t.id,t.again);for(let n of this.views)n.touch({op:"card",card:t})}}};var ue=`adknb-${Math.random().toString(36).slice(2)}`,Wt=0;function v(){return Wt+=1,`${ue}-${Wt}`}function o(i,t,...e){
let s=document.createElement(i);return t&&(s.className=t.split(" ").map(n=>`adknb-${n}`).join(" ")),s.append(...e.filter(
n=>n!=null&&n!=="")),s}function p(i,t,e){let s=o("button",`button ${t}`,i);return s.type="button",s.addEventListener("cl\
ick",e),s}function f(i,...t){return i.replaceChildren(...t.filter(e=>e!=null&&e!=="")),i}function gt(...i){let t=o("div",
"",...i),e=o("div","clip",t),s=p("Show all","small show-all",()=>{n=!n,r(),n||e.scrollIntoView({block:"nearest"})}),n=!1,
r=()=>{let a=t.offsetHeight>480;e.toggleAttribute("data-cut",a&&!n),s.hidden=!a,s.textContent=n?"Show less":"Show all",s.
setAttribute("aria-expanded",String(n))};return s.hidden=!0,s.addEventListener("keydown",a=>a.stopPropagation()),new ResizeObserver(
r).observe(t),o("div","",e,s)}function L(i,t){let e=p(i,"small",async()=>{try{await navigator.clipboard.writeText(t()),e.
textContent="Copied"}catch{e.textContent="The page may not copy"}setTimeout(()=>e.textContent=i,1500)});return e}function G(i,t,e){
let s=o("a","");s.href=URL.createObjectURL(new Blob([e],{type:t})),s.download=i,s.click(),setTimeout(()=>URL.revokeObjectURL(
s.href),1e3)}var ce=/^[\s\S]*[.!?…:;](?=\s)|^[\s\S]*\n/,pe=12,V=class{constructor(t){this.store=t,this.begun=new Map,this.node=o("d\
iv","hidden"),this.node.setAttribute("aria-live","polite"),this.node.setAttribute("aria-relevant","additions")}touch(t){
if(t.op==="status"&&t.status!=="running")for(let s of[...this.begun.keys()])this.rest(this.store.rows.get(s));let e=this.
store.rows.get(t.id??t.row?.id);e&&(t.op==="append"&&e.kind!=="user"&&!e.streaming?this.whole(e):t.op==="text"?this.sentences(
e):t.op==="patch"&&this.begun.has(e.id)?this.rest(e):t.op==="patch"&&t.kind==="marker"?this.whole(e):t.op==="patch"&&"ok"in
t&&t.ok!==null&&this.say(`${e.tool} ${t.ok?"is done":"failed"}: ${e.result}`))}whole(t){t.tool!=="transfer_to_agent"&&(t.
kind==="call"?this.say(`${t.author} calls ${t.tool}`):t.text&&this.say(`${t.author}${t.kind==="error"?", error":""}: ${t.
text}`))}sentences(t){let e=this.begun.get(t.id)??0,s=ce.exec(t.text.slice(e))?.[0];this.begun.set(t.id,e+(s?.length??0)),
s&&this.say(e?s:`${t.author}: ${s}`)}rest(t){if(!t)return;let e=this.begun.get(t.id);this.begun.delete(t.id);let s=t.text.
slice(e);s.trim()&&this.say(e?s:`${t.author}: ${s}`)}say(t){for(this.node.append(o("div","",t.replace(/[*`|]+|^#+ /gm,"").
trim().slice(0,500)));this.node.childElementCount>pe;)this.node.firstChild.remove()}};var fe=3,wt=i=>i?.default===null?void 0:i?.default;function S(i,t){let e=/^#\/\$defs\/(.+)$/.exec(i.$ref??"")?.[1];if(e&&
t.$defs?.[e])return{...S(t.$defs[e],{$defs:{}}),...i,$ref:void 0};if(Array.isArray(i.type)&&i.type.length===2&&i.type.includes(
"null"))return{...i,type:i.type.find(a=>a!=="null"),nullable:!0};let s=(i.anyOf??[]).filter(a=>a.type!=="null");if(s.length!==
1||s.length===i.anyOf.length)return i;let{anyOf:n,...r}=i;return{...S(s[0],t),...r,nullable:!0}}function kt(i,t){if(Array.
isArray(i.enum))return"enum";if(typeof t=="string"&&w(t)!==t)return"json";let e=typeof i.type=="string"?i.type.toLowerCase():
"";if(["string","integer","number","boolean"].includes(e))return e;if(e||i.anyOf||i.$ref)return"json";let s=typeof t;return[
"string","number","boolean"].includes(s)?s:"json"}function Ht(i,t,e){if(!(t==="integer"?/^[+-]?\d+$/:/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i).
test(i))return{error:t==="integer"?"a whole number is needed":"a number is needed"};let n=Number(i);return t==="integer"&&
!Number.isSafeInteger(n)?{error:"too large to be sent exactly"}:e.minimum!==void 0&&n<e.minimum?{error:`at least ${e.minimum}`}:
e.maximum!==void 0&&n>e.maximum?{error:`at most ${e.maximum}`}:{value:n}}function me(i){try{return{value:JSON.parse(i)}}catch(t){
return{error:`not JSON: ${t.message}`}}}function ge(i,t,e,s){if(i==="enum"){let l=o("select","input",...t.enum.map(h=>o(
"option","",w(String(h)))));return l.selectedIndex=t.enum.findIndex(h=>F(h,s?e:t.default)),[l,()=>l.selectedIndex<0?{skip:!0}:
{value:t.enum[l.selectedIndex]}]}if(i==="boolean"){let l=o("input","check");return l.type="checkbox",l.checked=(s?e:t.default)===
!0,[l,()=>({value:l.checked})]}if(i==="json"){let l=o("textarea","input");return l.value=s?w(JSON.stringify(e,null,2)):"",
l.rows=Math.min(8,l.value.split(`
`).length+1),[l,()=>!s&&!l.value.trim()?{skip:!0}:me(l.value)]}let n=i==="string"&&typeof e=="string"&&(e.includes(`
`)||e.length>60),r=o(n?"textarea":"input","input"),a=t.format==="password";if(n||Object.assign(r,{type:a?"password":"tex\
t",spellcheck:!1}),r.autocomplete=a?"new-password":"off",i!=="string"&&(r.inputMode=i==="integer"?"numeric":"decimal"),r.
value=e==null?"":String(e),t.nullable&&i!=="string")return[r,()=>r.value.trim()?Ht(r.value.trim(),i,t):{value:null}];if(i===
"string"){let l=()=>t.nullable&&!r.value?{value:null}:{value:r.value};return[r,()=>!s&&!r.value?{skip:!0}:l()]}return[r,
()=>!s&&!r.value.trim()?{skip:!0}:Ht(r.value.trim(),i,t)]}function Y(i,t,e,s,{depth:n=0,within:r="",needed:a}={}){let l=S(
t,s);if(l.properties&&n<fe&&bt(e[i]??{}))return be(i,l,e,s,n,r);let h=Object.hasOwn(e,i),d=kt(l,e[i]),[u,c]=ge(d,l,e[i],
h),m=u.type==="checkbox"?u.checked:u.value;u.id=v();let k=n===0&&s.properties&&!s.additionalProperties&&!Object.hasOwn(s.
properties,i),g=[k?"unknown":"",{json:"JSON",enum:"one of"}[d]??d,l.nullable&&a!==!1?"or empty":""];!h&&wt(l)!==void 0?g.
push(`default ${U(l.default)}`):a===!1&&g.push("optional");let x=s["x-titles"]?l.title:null,I=x?"":` ${g.filter(Boolean).
join(", ")}`,q=o("label","field-name",x??(k?Ft(i):w(i)),o("span","dim",I));q.htmlFor=u.id;let A=o("div","problem");A.id=
`${u.id}-problem`,A.setAttribute("role","alert"),u.setAttribute("aria-describedby",A.id),a&&d!=="boolean"&&u.setAttribute(
"aria-required","true");let ft=o("div","field",q,u,l.description?o("div","dim",w(l.description)):null,A);return{name:i,title:x,
box:ft,node:u,check:()=>{let N=(u.type==="checkbox"?u.checked:u.value)!==m?c():{skip:!0};return A.textContent=N.error?w(
`${r}${i}: ${N.error}`):"",u.setAttribute("aria-invalid",String(!!N.error)),N.error?{...N,node:u}:N}}}var bt=i=>typeof i==
"object"&&i!==null&&!Array.isArray(i);function vt(i,t,e,s=0,n=""){let r=i?.properties??{},a=[...new Set([...Object.keys(
r),...Object.keys(t)])],l=h=>Object.hasOwn(r,h)?(i.required??[]).includes(h):void 0;return a.map(h=>Y(h,r[h]??{},t,e,{depth:s,
within:n,needed:l(h)}))}function be(i,t,e,s,n,r){let a=e[i]??{},l=vt(t,a,s,n+1,`${r}${i}.`),h=o("legend","field-name",w(
i)),d=o("fieldset","group",h,t.description?o("div","dim",w(t.description)):null);d.append(...l.map(c=>c.box));let u=()=>{
let c=l.map(g=>[g.name,g.check()]),m=c.find(([,g])=>g.error);if(m)return m[1];let k=c.filter(([,g])=>!g.skip).map(([g,x])=>[
g,x.value]);return k.length?{value:{...a,...Object.fromEntries(k)}}:{skip:!0}};return{name:i,box:d,node:l[0]?.node,check:u}}
function yt(i,t,e){return F(t,e)?[]:!bt(t)||!bt(e)?[o("div","",o("b","",w(i)),` ${U(t)} → ${U(e)}`)]:[...new Set([...Object.
keys(t),...Object.keys(e)])].flatMap(n=>yt(`${i}.${n}`,t[n],e[n]))}function Ut(i,t){i.addEventListener("keydown",e=>{e.key!==
"Escape"||e.isComposing||(e.stopPropagation(),t())})}var we=12;function Gt(i,t){let e=S(i,t),s=e.nullable?[{label:"Nothing",value:null}]:[];if(Object.hasOwn(e,"const"))return[
{label:e.title??zt(e.const),value:e.const}];if(Array.isArray(e.enum))return[...e.enum.map(r=>({label:zt(r),value:r})),...s];
if(e.type==="boolean")return[{label:"Yes",value:!0},{label:"No",value:!1},...s];if(e.type==="null")return[{label:"Nothin\
g",value:null}];let n=(e.oneOf??e.anyOf??[]).map(r=>Gt(r,t));return n.length&&n.every(Boolean)?n.flat():null}var zt=i=>i===
null?"Nothing":w(typeof i=="string"?i:JSON.stringify(i)),j=class{constructor(t,e,{label:s="Send",look:n="go",changed:r=s,
more:a=[],leave:l=null,values:h=null}={}){Object.assign(this,{send:e,label:s,changed:r,more:a,leave:l,values:h}),this.go=
p(s,n,()=>this.submit()),this.schema=S(t??{},t??{}),this.root=t??{},this.twin=o("span","twin");let d=Gt(this.schema,this.
root);!h&&d?.length&&d.length<=we?this.choose(d):this.fill(d)}choose(t){let e=t.map(({label:s,value:n})=>p(s,"choice",()=>this.
send(n)));this.first=e[0],this.node=o("div","buttons",...e,this.twin)}fill(t){this.isObject=!!(this.values||this.schema.
properties),this.fields=this.isObject?vt(this.schema,this.values??{},this.root):[this.field(t)],this.first=this.fields[0]?.
node,this.problem=o("div","problem"),this.problem.setAttribute("role","alert"),this.difference=o("div","difference"),this.
difference.setAttribute("aria-live","polite");let e=this.fields.map(s=>s.box);this.node=o("div","form answer",...e,this.
values?this.difference:null,this.problem),this.node.append(o("div","buttons",this.go,...this.more,this.twin)),this.node.
addEventListener("input",()=>this.check()),this.leave&&Ut(this.node,this.leave),this.node.addEventListener("keydown",s=>{
this.values||s.key!=="Enter"||s.isComposing||s.shiftKey||!s.target.matches("input, .adknb-say")||(s.preventDefault(),this.
submit())})}field(t){let e=kt(this.schema);return t?Y("Your answer",{...this.schema,enum:t.map(n=>n.value)},{},this.root):
e==="string"||e==="json"&&!["object","array"].includes(this.schema.type)?this.text():Y(this.schema.title??"Your answer",
this.schema,{},this.root)}text(){let t=o("textarea","input say");t.rows=1,t.id=v(),t.value=typeof this.schema.default=="\
string"?this.schema.default:"",t.addEventListener("input",()=>t.rows=Math.min(8,t.value.split(`
`).length));let e=o("label","field-name",this.schema.title??"Your answer");e.htmlFor=t.id;let s=this.schema.nullable?{value:null}:
{skip:!0};return{name:"",node:t,box:o("div","field",e,t),check:()=>t.value.trim()?{value:t.value}:s}}check(){this.problem.
textContent="";let t=this.fields.map(r=>[r,r.check()]);if(this.go.disabled=t.some(([,r])=>r.error),!this.values)return;let e=this.
schema.properties??{},s=r=>Object.hasOwn(this.values,r)?this.values[r]:wt(e[r]),n=Object.entries(this.edits(t)??{}).flatMap(
([r,a])=>yt(r,s(r),a));f(this.difference,...n),this.go.textContent=n.length?this.changed:this.label}edits(t){let e=t.filter(
([s,{skip:n,error:r,value:a}])=>!n&&!r&&!F(a,this.values[s.name]));return e.length?this.object(e):null}submit(){let t=this.
fields.map(a=>[a,this.result(a)]),[e,s]=t.find(([,a])=>a.error)??[],n=this.fields.find((a,l)=>t[l][1].skip&&this.isNeeded(
a)),r=n?.name?`${n.title??n.name}: nothing was typed`:"nothing was typed";this.problem.textContent=n&&!e?w(r):"",e?(s.node??
e.node).focus():n?n.node?.focus():this.values?this.send(this.edits(t)):this.send(this.isObject?this.object(t):t[0][1].value)}object(t){
return Object.fromEntries(t.filter(([,e])=>!e.skip).map(([e,s])=>[e.name,s.value]))}result(t){let e=t.check();if(typeof e.
value=="string"&&!e.value.trim()&&this.isNeeded(t))return{skip:!0};if(!e.skip||this.values&&!this.isNeeded(t))return e;let s=this.
isObject?S(this.schema.properties[t.name],this.root):this.schema;return s.default!==void 0?{value:s.default}:t.node?.type===
"checkbox"?{value:t.node.checked}:e}isNeeded(t){return this.isObject?this.values&&Object.hasOwn(this.values,t.name)?!1:!S(
this.schema.properties?.[t.name]??{},this.root).properties&&(this.schema.required??[]).includes(t.name):!0}};function Vt(i){let t=/^In\[(\d+)\]/.exec(i)?.[1];if(!t||!document.querySelector(".jp-Notebook"))return o("code","where",
i);let e=p(i,"where",()=>{let n=[...e.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt")??[]].find(r=>r.textContent.
trim()===`[${t}]:`)?.closest(".jp-Cell");n?.scrollIntoView({block:"center"}),n?.querySelector(".cm-content")?.focus({preventScroll:!0})});
return e.title="Go to that cell",e}function xt(i,t){let e=(i??[]).map(({name:s,text:n,left_out:r,note:a})=>{let l=o("cod\
e","",n),h=a?o("span",a==="unknown"?"bad":"dim",` (${a})`):null,d=r&&t?p(`Show all of ${s}`,"small",()=>t(l,d)):null;return o(
"span","arg",o("span","dim",`${s} `),l,h,d)});return e.length?o("div","arguments",...e):null}function Yt(i){if(!i)return[
null,null];let t=o("pre","json trace",i);t.hidden=!0,t.tabIndex=0,t.id=v(),t.setAttribute("role","group"),t.setAttribute(
"aria-label","Traceback");let e=p("Show traceback","",()=>{t.hidden=!t.hidden,e.textContent=t.hidden?"Show traceback":"H\
ide traceback",e.setAttribute("aria-expanded",String(!t.hidden))});return e.setAttribute("aria-controls",t.id),e.setAttribute(
"aria-expanded","false"),[e,t]}function Xt({tool:i,where:t,arguments:e,sent:s,traceback:n}){let[r,a]=Yt(n),l=o("div","",
o("b","bad","✗ Error")," ",o("code","",i)," failed",t?" in ":"");t&&l.append(Vt(t));let h=o("div","",o("span","dim","s\
ent to the model as "),o("code","",s));return o("div","failure",l,xt(e),h,r?o("div","buttons",r):null,a)}function Qt(i,t,e){
let s=o("div","ask",o("b","bad","✗ Error"),` ${i.title}`),n=s.textContent;if(i.where&&s.append(" in ",Vt(i.where)),!t)
return{head:s,parts:[],said:n};let[r,a]=Yt(i.traceback),l=[i.ways.includes("retry")?p("Retry","",()=>e("retry")):null,i.
ways.includes("drop")?p("Drop turn","",()=>e("drop")):null];return l[0]&&(l[0].title="Take the turn back and say the sam\
e again"),l[1]&&(l[1].title="Take the turn back: the agent forgets it"),{head:s,parts:[o("div","buttons",...l,r),a??""],
said:n}}function Zt(i){let t=o("span","count"),e=performance.now()+i.seconds*1e3,s=()=>{let r=Math.ceil((e-performance.now())/
1e3);t.textContent=r>0?`asked again in ${r} s`:"asked again now",r>0&&(t.isConnected||!t.dataset.seen)&&setTimeout(s,250),
t.isConnected&&(t.dataset.seen="")};return s(),{head:o("div","ask",o("span","icon","⏳"),` ${i.title}; `,t,i.hint?o("sp\
an","dim",` (${i.hint})`):""),parts:[],said:`${i.title}; ${t.textContent}`}}var X=class{constructor(t,e){this.store=t,this.view=e,this.nodes=new Map,this.forms=new Map,this.node=o("div","cards")}paint(){
for(let[t,{node:e}]of this.nodes)this.store.cards.has(t)||(e.remove(),this.nodes.delete(t),this.forms.delete(t));for(let t of this.
store.cards.values()){let e=JSON.stringify([t,this.store.isOpen(t),this.isNext(t)]),s=this.nodes.get(t.id);if(s?.drawn===
e)continue;let n=document.activeElement,r=s?.node.contains(n),a=this.card(t);s?s.node.replaceWith(a):this.node.append(a),
r&&(a.contains(n)?n:this.store.isOpen(t)&&this.forms.get(t.id)?.first||a).focus(),this.nodes.set(t.id,{node:a,drawn:e})}}card(t){
if(t.kind==="error"||t.kind==="wait")return this.notice(t);let e=this.store.isOpen(t),s=t.kind==="credential",n=o("div",
"ask",o("span","icon",e?"⚠":""),` ${t.agent} `);s?n.append("calls ",o("b","",t.tool),`, which needs ${t.needs}`):t.kind===
"input"&&!t.tool?n.append("asks"):n.append("asks to call ",o("b","",t.tool));let r=this.frame(t,n,e?"alertdialog":"group"),
a=(d,u)=>this.showAll(t,d,u),l=t.hint?o("div",t.kind==="input"?"question":"hint",t.hint):"",h=xt(t.arguments,a)??"";return r.
append(...t.kind==="input"?[l,h]:[h,l]),r.append(...(t.remarks??[]).map(d=>o("div","remark",d))),e?(r.append(t.note?o("d\
iv","problem",t.note):""),s?this.offerToGive(r,t):t.kind==="input"&&!t.tool?this.offerToAnswer(r,t):this.offer(r,t),this.
view.said.textContent=[n.textContent,t.kind==="input"?t.hint:"",t.note].filter(Boolean).join(" ")):(r.append(this.outcome(
t)),this.view.said.textContent=""),r}frame(t,e,s){let n=o("div","card",e);return e.id=v(),n.dataset.state=t.state,n.dataset.
card=t.id,n.dataset.kind=t.kind,n.tabIndex=-1,n.setAttribute("aria-labelledby",e.id),n.setAttribute("role",s),n.addEventListener(
"keydown",r=>this.onCardKey(r)),n}notice(t){let e=this.store.isOpen(t),s=h=>this.store.decide(t,h,{}),{head:n,parts:r,said:a}=t.
kind==="wait"?Zt(t):Qt(t,e,s),l=this.frame(t,n,"group");return l.append(...r),e?this.view.said.textContent=a:t.kind==="w\
ait"?l.hidden=!0:(t.state!=="asked"||this.store.sent.has(t.id))&&l.append(this.outcome(t)),l}outcome(t){let[e,s]=Dt[t.state]??
["…","sent; the kernel answers when it is free"];return o("div","outcome",o("b","",`${e} ${s}`),t.note?`: ${t.note}`:"")}offer(t,e){
let s=o("div","place");t.append(s);let n=this.forms.get(e.id);if(n&&!(e.changed&&n.values))return s.append(n.node);let r=e.
how?o("span","twin","or type: ",o("code","",e.how)):"",a=()=>this.store.cards.get(e.id),l=m=>{this.forms.set(e.id,m),f(s,
m.node),m.first?.focus()},h=p("Reject…","reject",()=>l(this.reasonForm(e,a,()=>this.leaveForm(e.id,"reject")))),d=p("A\
pprove","go",()=>this.answer(a(),!0));if(e.changed)return s.append(this.offerAfterAChange(e,d,h,r));let u=p("Edit…","e\
dit",()=>{this.whole(e,m=>l(this.editForm(m,a,()=>this.leaveForm(e.id,"edit"))))}),c=[d,e.kind==="approval"?u:null,h];e.
destructive&&c.reverse(),s.append(o("div","buttons",...c,r))}leaveForm(t,e){this.forms.delete(t),this.nodes.get(t).drawn=
"",this.paint(),this.nodes.get(t).node.querySelector(`.adknb-${e}`)?.focus()}editForm(t,e,s){let r={label:"Approve uncha\
nged",changed:"Approve with these changes",more:[p("Back","back",s)],leave:s,values:t.args};return new j(t.schema,a=>this.
answer(e(),!0,{args:a}),r)}reasonForm({kind:t},e,s){let n={type:"string",title:t==="approval"?"reason (optional; the mod\
el is told)":"reason (optional)"},r=l=>this.answer(e(),!1,{reason:l.reason?.trim()||null}),a={label:"Reject",look:"rejec\
t",more:[p("Back","back",s)],leave:s};return new j({properties:{reason:n},"x-titles":!0},r,a)}answer(t,e,{args:s=null,reason:n=null}={}){
t.kind==="approval"?this.store.decide(t,e?"approve":"reject",{args:s,reason:n}):this.store.decide(t,"answer",{value:n?{confirmed:e,
reason:n}:{confirmed:e}})}whole(t,e){t.args?e(t):this.store.need("call",t.id,e)}showAll(t,e,s){let n=[...e.closest(".adk\
nb-arguments").children].indexOf(e.parentNode);this.store.need("call",t.id,({texts:r})=>{e.classList.add("adknb-whole"),
e.tabIndex=0,e.textContent=r[n],s.remove()})}offerAfterAChange(t,e,s,n){e.disabled=!0;let r=d=>this.store.decide(t,d,{args:null,
reason:null}),a=p("Re-ask","go",()=>r("reask")),l=t.version?p(`Run old version (${t.version})`,"edit",()=>r("old")):"",h=o(
"div","problem",t.changed);return o("div","",h,o("div","buttons",e,a,l,s,n))}offerToGive(t,e){if(!this.forms.has(e.id)){
let n=(l,h)=>{this.forms.delete(e.id),this.store.decide(this.store.cards.get(e.id),l,h)},r=p("Refuse","refuse",()=>n("re\
fuse",{})),a={...e.answer_schema,"x-titles":!0};this.forms.set(e.id,new j(a,l=>n("answer",{value:l}),{label:"Continue",more:[
r]}))}let s=this.forms.get(e.id);f(s.twin,"or type: ",o("code","",e.how)),t.append(ke(e.link)??"",s.node)}offerToAnswer(t,e){
if(!this.forms.has(e.id)){let r=a=>this.store.decide(this.store.cards.get(e.id),"answer",{value:a});this.forms.set(e.id,
new j(e.answer_schema,r))}let s=this.forms.get(e.id),n=this.store.box&&this.isNext(e);f(s.twin,...n?["or type it below"]:
["or type: ",o("code","",e.how)]),t.append(s.node)}isNext(t){return t===[...this.store.cards.values()].find(e=>e.kind===
"input"&&this.store.isOpen(e))}onCardKey(t){t.key==="Escape"&&this.view.leave(),t.stopPropagation()}};function ke(i){if(!/^https?:/i.
test(i))return null;let t=o("a","link",`Open ${new URL(i).host}`);return t.href=i,t.target="_blank",t.rel="noopener nore\
ferrer",o("div","step",t,o("span","dim"," and let it in there, then paste where that leads:"))}var ve=8,Q=class{constructor(t,e){this.store=t,this.view=e,this.input=o("textarea","input say"),this.input.rows=1,this.input.
id=v(),this.hint=o("div","dim hint-line"),this.hint.id=`${this.input.id}-hint`,this.input.setAttribute("aria-describedby",
this.hint.id),this.input.addEventListener("input",()=>this.grow()),this.send=p("Send","go",()=>this.say());let s=o("labe\
l","hidden",`Message to ${t.title}`);s.htmlFor=this.input.id,this.node=o("div","composer",s,this.input,this.send,this.hint),
this.node.addEventListener("keydown",n=>this.onKey(n))}get reason(){let{status:t,cards:e}=this.store;return this.store.gone?
"The kernel is gone: run the cell again.":[...e.values()].some(s=>this.store.isOpen(s)&&!this.isTypedHere(s))?"Answer th\
e card above first.":this.waits?"Sent; the kernel answers when it is free.":t.status==="running"?"Wait for the answer, o\
r stop it.":""}isTypedHere(t){return["error","wait"].includes(t.kind)||t.kind==="input"&&!t.tool}paint(){let{reason:t}=this,
e=[...this.store.cards.values()].some(s=>s.kind==="input"&&this.store.isOpen(s));this.send.disabled=!!t,this.input.disabled=
!!this.store.gone,this.hint.textContent=t||`Enter sends${e?" your answer":""}, Shift+Enter makes a new line.`}touch(t){t.
op==="status"&&(this.waits=!1)}say(){let t=this.input.value;!t.trim()||this.reason||this.store.say({kind:"ask",text:t})&&
(this.input.value="",this.waits=!0,this.grow(),this.paint(),this.input.focus())}grow(){this.input.rows=Math.min(ve,this.
input.value.split(`
`).length)}onKey(t){t.stopPropagation(),t.key==="Escape"?this.view.leave():t.key==="Enter"&&t.target===this.input&&!t.shiftKey&&
!t.isComposing&&(t.preventDefault(),this.say())}};var Z=class{constructor(t){this.view=t,t.root.addEventListener("keydown",e=>this.onKey(e),!0),t.root.setAttribute("aria-\
keyshortcuts","/ s w Escape")}onKey(t){t.ctrlKey||t.metaKey||t.altKey||t.isComposing||t.target.closest("input, textarea,\
 select, [contenteditable], .adknb-form")||this.does(t.key)&&(t.preventDefault(),t.stopPropagation())}does(t){let{tabs:e,
tools:s}=this.view;if(t==="Escape")return this.view.leave(),!0;let n={"/":"events",s:"state",w:"waterfall"}[t],r=e.panels.
find(a=>a.name===n&&a.exists);return!r||!this.view.store.rows.size?!1:(this.view.unfold(),e.select(r,t!=="/"),this.view.
paint(),t==="/"&&s.filter.focus(),!0)}};var tt=class{constructor(t){this.store=t,this.nodes=new Map,this.node=o("ul","lanes"),this.node.setAttribute("aria-label",
"Working at once"),this.node.tabIndex=0}paint(){let{lanes:t,last:e,rows:s}=this.store;if(this.node.hidden=t.size<2,!this.
node.hidden)for(let n of t.values()){let r=this.words(s.get(e.get(n.id))),a=`${n.state} ${r}`,l=this.nodes.get(n.id);if(l?.
drawn===a)continue;let[h,d]=K[n.state]??["",""],u=o("span","stands",o("span","icon",h),` ${d}`),c=o("li","lane",u,o("spa\
n","author",n.label),o("span","words",r));c.dataset.mark=n.state,c.dataset.lane=this.color(n.id),l?l.node.replaceWith(c):
this.node.append(c),this.nodes.set(n.id,{node:c,drawn:a})}}words(t){return t?t.kind==="call"?`⚙ ${t.tool}(${t.args}) ${t.
result??t.text}`:t.text.trim().split(`
`).pop():""}color(t){return[...this.store.lanes.keys()].indexOf(t)%4}};var ye=new Set("A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP TABLE TBODY TD TH\
 THEAD TR UL".split(" ")),xe=new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" ")),$e=/^(https?:|mailto:|#)/i;
function _(i){let t=document.createElement("template");t.innerHTML=i;for(let e of[...t.content.querySelectorAll("*")]){let s=e.
tagName.toUpperCase();if(xe.has(s)){e.remove();continue}let n=s==="A"?e.getAttribute("href"):null;for(let{name:r}of[...e.
attributes])r!=="start"&&r!=="title"&&r!=="align"&&e.removeAttribute(r);n&&$e.test(n.trim())&&(e.setAttribute("href",n.trim()),
e.setAttribute("target","_blank"),e.setAttribute("rel","noopener noreferrer nofollow")),ye.has(s)||e.replaceWith(...e.childNodes)}
for(let e of t.content.querySelectorAll("table")){let s=o("div","wide");e.replaceWith(s),s.append(e)}return t.content}var Ot=i=>i.
html!==null&&i.html!==void 0;function st(i,t){let e=o("div","html",_(i));return $t(e,t),e}function $t(i,t){/\\[([]/.test(
i.textContent)&&(t?.rendermime??t?._rendermime)?.latexTypesetter?.typeset(i)}var et=class{constructor(t){this.manager=t,
this.length=0,this.tail=o("div","html"),this.caret=o("span","caret","▌"),this.complete=o("div","html"),this.node=o("di\
v","growing",this.complete,this.tail)}paint({html:t,tail:e}){if(t.length>this.length){let n=document.createElement("div");
n.append(_(t.slice(this.length))),this.complete.append(...n.childNodes),$t(this.complete,this.manager),this.length=t.length}
f(this.tail,_(e)),$t(this.tail,this.manager);let s=this.tail;for(;s.lastElementChild?.matches("p, ul, ol, li, blockquote\
, pre, h4, h5, h6, pre > code");)s=s.lastElementChild;s.append(this.caret)}};function C(i,t="Search suggestions"){let e=o(
"iframe","page");return e.sandbox="allow-popups allow-popups-to-escape-sandbox",e.referrerPolicy="no-referrer",e.title=t,
e.srcdoc=i,e}function St(i,t){if(!/^data:image\//.test(i))return null;let e=o("img","image");return e.src=i,e.alt=t??"",
e}function P(i){if(!i?.length)return null;let t={image:e=>St(e.src,e.alt),table:e=>o("div","html",_(e.html),e.note?o("di\
v","dim",e.note):null),page:e=>C(e.page,e.title),note:e=>o("div","dim",e.text)};return o("div","looked-at",...i.map(e=>t[e.
kind]?.(e)))}var At=2e3;function M(i,t="",e=!0){if(i===null||typeof i!="object")return o("div","leaf",Et(t),Oe(i));let s=Array.isArray(
i)?i.map((d,u)=>[String(u),d]):Object.entries(i),[n,r]=Array.isArray(i)?"[]":"{}";if(!s.length)return o("div","leaf",Et(
t),o("span","dim",n+r));let a=`${s.length} ${s.length===1?"entry":"entries"}`,l=o("details","branch",o("summary","",Et(t),
o("span","dim",`${n} ${a} ${r}`))),h=()=>{l.childElementCount===1&&l.append(o("div","twigs",...s.map(([d,u])=>M(u,d,!1))))};
return l.addEventListener("toggle",()=>l.open&&h()),e&&h(),l.open=e,l}function Et(i){return i===""?null:o("span","name",
`${i}: `)}function Oe(i){let t=typeof i=="string"?i:JSON.stringify(i),e=o("span",typeof i=="string"?"string":"atom",t.slice(
0,At));if(t.length<=At)return e;let s=p(`… ${(t.length-At).toLocaleString("en")} more`,"small",()=>{e.textContent=t,s.
remove()});return o("span","",e," ",s)}var it=class{constructor(t){this.store=t,this.node=o("div","state"),this.node.setAttribute("role","group"),this.node.setAttribute(
"aria-label","State"),this.node.tabIndex=0}paint(){let{state:t}=this.store;if(this.node.hidden=!t.length,!t.length)return;
let e=o("div","pane-head","State");t.some(s=>s.kind)&&e.append(o("span","dim"," + ~ - against the start")),f(this.node,e,
...t.map(s=>jt(s.key,s.kind,s.old,s.value)))}};function jt(i,t,e,s){let n=t==="~"?`${e??""} → ${s??""}`:(t==="-"?e:s)??
"",r=o("span","mark",t||" "),a=o("div","entry",r,o("span","key",i),o("span","value",n));return a.dataset.mark=t||"",T[t]&&
r.append(o("span","hidden",` ${T[t]}`)),a}var nt=class{constructor(t){this.store=t}may(t){return!!(t.failure||t.detail||t.changes?.length||this.store.offers.includes(
"event"))}ask(t){this.store.offers.includes("event")&&this.store.say({kind:"need",what:"event",id:t.id})}node(t){let e=(t.
changes??[]).map(n=>jt(n.key,n.kind,n.old,n.new)),s=this.store.panels.get(`event/${t.id}`);return o("div","detail",t.failure?
Xt(t.failure):null,e.length?o("div","changes",o("div","dim","state changed by this event"),...e):null,...s?this.events(t,
s):[t.detail&&!t.failure?o("pre","json",t.detail):null])}events(t,e){let s=L("Copy JSON",()=>e.map(r=>JSON.stringify(r,null,
2)).join(`
`)),n=this.store.offers.includes("rerun")&&!this.store.gone&&this.store.status.status!=="running"?p("Rerun from here","s\
mall",()=>this.store.say({kind:"rerun",event:t.id.split("/")[0]})):null;return n&&(n.title="Ask again with the session a\
s it was before this event; this conversation is kept"),[o("div","detail-buttons",s,n),...e.map((r,a)=>M(r,e.length>1?`e\
vent ${a+1}`:"event",a===e.length-1))]}};function B(i){let t=i.kind==="user"&&i.author==="user"?"you":i.author;return i.kind==="call"?`${t} ${i.tool}(${i.args}) ${i.
result??i.text}`.trim():`${t} ${i.kind==="text"||i.kind==="user"?"":`${i.kind}: `}${i.text.replace(/\s+/g," ")}`}var ot=class{constructor(t,e){this.store=t,this.view=e,this.nodes=new Map,this.open=new Set,this.dirty=new Set,this.selected=
null,this.longest=0,this.words="",this.details=new nt(t),this.earlier=o("div","earlier"),this.node=o("div","log",this.earlier),
this.node.setAttribute("role","log"),this.node.setAttribute("aria-live","off"),this.node.setAttribute("aria-label","Even\
ts"),this.node.addEventListener("keydown",s=>this.onKey(s)),this.node.addEventListener("click",s=>this.onClick(s))}reset(){
for(let t of this.store.rows.keys())this.mark(t)}touch(t){if((t.failure??t.row?.failure)&&this.open.add(t.id??t.row.id),
t.op==="append")this.dirty.add(t.row.id);else if(t.op==="text")this.dirty.add(t.id);else if(t.op==="patch"||t.op==="stat\
e")this.mark(t.id??t.event),t.op==="patch"&&this.open.has(t.id)&&!t.failure&&this.details.ask(t);else if(t.op==="panel"&&
t.name==="event")this.reread(t.id);else if(t.op==="offers")this.reset();else if(t.op==="status")for(let[e,{text:s,growing:n}]of this.
nodes)(s||n)&&this.mark(e)}reread(t){this.reading=!0,this.mark(t)}mark(t){let e=this.nodes.get(t);e&&(e.text=e.growing=null),
this.dirty.add(t)}paint(){let{node:t,store:e}=this,s=!this.reading&&t.scrollHeight-t.scrollTop-t.clientHeight<24;this.reading=
!1;for(let n of this.dirty)this.paintRow(e.rows.get(n),n);return this.dirty.clear(),this.forget(),t.toggleAttribute("dat\
a-long",this.nodes.size>50),this.earlier.textContent=e.earlier?`${e.earlier} earlier rows`:"",this.nodes.has(this.selected)||
this.select(this.nodes.keys().next().value??null,!1),()=>s&&(t.scrollTop=t.scrollHeight)}forget(){if(this.nodes.size!==this.
store.rows.size)for(let[t,{node:e}]of this.nodes)this.store.rows.has(t)||(e.remove(),this.nodes.delete(t),this.open.delete(
t))}paintRow(t,e){if(!t)return;let s=this.nodes.get(e);if(s?.growing&&t.streaming){s.growing.paint(t);return}if(s?.text&&
t.streaming){s.text.appendData(t.text.slice(s.length)),s.length=t.text.length;return}let n=s?.node??o("div","row");n.dataset.
id=e,n.dataset.kind=t.kind,t.lane&&(n.dataset.lane=this.view.lanes.color(t.lane)),n.tabIndex=e===this.selected?0:-1,n.setAttribute(
"aria-busy",String(!!t.streaming));let r=o("div","what"),a=t.streaming&&Ot(t)?new et(this.store.manager):null,l=a?r.append(
a.node):this.fill(r,t);a?.paint(t);let h=this.details.may(t)?this.disclosure(t):o("span","more");f(n,h,this.author(t),r,
this.numbers(t),this.detail(t)),s||this.node.append(n),this.words&&(n.hidden=!this.fits(t)),this.nodes.set(e,{node:n,growing:a,
text:t.streaming?l:null,length:t.text.length})}author(t){let e=t.kind==="user"&&t.author==="user"?"you":t.author,s=o("sp\
an","author",e);return s.title=e,e.length>this.longest&&(this.longest=e.length,this.node.style.setProperty("--adknb-auth\
or-letters",e.length)),s}numbers(t){let e=o("span","ms",b(t.ms));return t.usage&&(e.append(o("div","tokens",t.usage.text)),
e.title=t.usage.title),e}fill(t,e){if(e.kind==="call")return this.fillCall(t,e),null;if(e.kind==="error"&&t.append(o("sp\
an","label bad","✗ ")),e.kind==="thought"&&t.append(o("span","label dim","thought ")),Ot(e)){let n=st(e.html+(e.tail??
""),this.store.manager);return t.append(n,...(e.pages??[]).map(r=>C(r))),t.append(P(e.shown)??""),null}let s=document.createTextNode(
e.text);return t.append(o("span","text",s)),e.streaming&&t.append(o("span","caret","▌")),t.append(P(e.shown)??""),s}fillCall(t,e){
if(t.append(o("span","icon","⚙")," ",o("span","call",e.tool,"(",o("wbr"),o("span","args",e.args),")")),e.text&&t.append(
" ",o("span","text",e.text)),e.result===null&&e.ok===null){this.store.status.status==="running"&&t.append(" ",o("span","\
dim","…"));return}let s=e.ok===!1?o("span","bad","✗ failed"):e.ok?o("span","good","✓"):null;t.append(" ",s??"→",
" ",o("span","result",e.result),P(e.shown)??"")}disclosure(t){let e=this.open.has(t.id),s=o("button","more",e?"▾":"▸");
return s.type="button",s.tabIndex=-1,s.setAttribute("aria-expanded",String(e)),s.setAttribute("aria-label","details"),s}detail(t){
return this.open.has(t.id)?this.details.node(t):null}toggle(t,e=!this.open.has(t)){let s=this.store.rows.get(t);!s||!this.
details.may(s)||(e?this.open.add(t):this.open.delete(t),e&&this.details.ask(s),this.reread(t),this.view.schedule())}narrow(t){
this.words=t.trim().toLowerCase();for(let[e,{node:s}]of this.nodes)s.hidden=!this.fits(this.store.rows.get(e));this.view.
schedule()}fits(t){return!this.words||B(t).toLowerCase().includes(this.words)}shown(){return[...this.store.rows.values()].
filter(t=>this.fits(t))}reveal(t){let e=[...this.nodes.keys()].findLast(s=>s===t||s.startsWith(`${t}/`));e&&(this.select(
e),this.toggle(e,!0),this.nodes.get(e).node.scrollIntoView({block:"nearest"}))}select(t,e=!0){let s=this.nodes.get(this.
selected)?.node;s&&(s.tabIndex=-1),this.selected=t;let n=this.nodes.get(t)?.node;n&&(n.tabIndex=0,e&&n.focus())}onClick(t){
let e=t.target.closest(".adknb-row");if(!e||t.target.closest("a"))return;this.select(e.dataset.id,!!t.target.closest(".a\
dknb-more"));let s=t.target.closest(".adknb-detail");(t.target.closest("button")?!s:!s&&!String(getSelection()))&&this.toggle(
e.dataset.id)}onKey(t){if(t.ctrlKey||t.metaKey||t.altKey||t.shiftKey)return;let e=this.shown().map(r=>r.id),s=e.indexOf(
this.selected),n={ArrowUp:s-1,ArrowDown:s+1,Home:0,End:e.length-1};if(t.key in n)this.select(e[Math.min(e.length-1,Math.
max(0,n[t.key]))]??null);else{if(["Enter"," "].includes(t.key)&&t.target.closest("a, .adknb-detail"))return t.stopPropagation();
if(t.key==="Enter")this.toggle(this.selected);else if(t.key==="ArrowRight")this.toggle(this.selected,!0);else if(t.key===
"ArrowLeft")this.toggle(this.selected,!1);else if(t.key==="Escape")this.view.leave();else return}t.preventDefault(),t.stopPropagation()}};var rt=class{constructor(t,e){this.store=t,this.view=e,this.filter=o("input","input filter"),this.filter.type="search",this.
filter.placeholder="filter",this.filter.setAttribute("aria-label","Filter the events"),this.filter.addEventListener("inp\
ut",()=>e.events.narrow(this.filter.value)),this.filter.addEventListener("keydown",s=>{s.stopPropagation(),s.key==="Esca\
pe"&&(this.filter.value||e.leave(),this.filter.value="",e.events.narrow(""))}),this.count=o("span","dim found"),this.count.
setAttribute("role","status"),this.copy=L("Copy",()=>e.events.shown().map(B).join(`
`)),this.copy.title="Copy the log, as it is shown",this.save=p("⤓","small",()=>this.download()),this.save.title="Downl\
oad the events as JSON lines",this.save.setAttribute("aria-label",this.save.title),this.node=o("div","log-tools",this.count,
this.filter,this.copy,this.save)}paint(t,e){this.node.hidden=e||this.view.tabs.current!==this.view.log||!this.store.rows.
size,this.count.textContent=t===null?"":`${t} of ${this.store.rows.size}`}download(){this.waits=this.store.offers.includes(
"log")&&this.store.say({kind:"need",what:"log"}),this.waits||this.keep([...this.store.rows.values()].map(t=>JSON.stringify(
t)).join(`
`))}touch(t){t.op!=="panel"||t.name!=="log"||!this.waits||(this.waits=!1,this.keep(t.data))}keep(t){G("events.jsonl","ap\
plication/jsonl",`${t}
`)}};var ee=new Map;function y(i){ee.set(i.name,i)}function se({name:i,title:t,module:e}){return e?{name:i,title:t,mount:(s,n)=>new Ct(
i,Se(e),s,n)}:ee.get(i)??null}var te=new Map;function Se(i){let t=te.get(i);if(t)return t;let e=URL.createObjectURL(new Blob(
[i],{type:"text/javascript"})),s=import(e).finally(()=>URL.revokeObjectURL(e));return te.set(i,s),s}var Ct=class{constructor(t,e,s,n){
this.root=s,this.view=ie(t,n),this.render=void 0,e.then(r=>{this.render=r.default.render,n.repaint()},r=>f(s,o("div","pr\
oblem",`This panel could not be loaded: ${r}`)))}paint(t){t!==void 0&&this.render?.(this.root,t,this.view)}};function ie(i,t){
let{store:e}=t;return{need:s=>new Promise(n=>e.need(i,s,n)),showEvent:s=>t.showEvent(s),get status(){return e.status.status}}}
var at=class{constructor(t,e){this.panel=t,this.view=e,this.name=t.name,this.title=t.title,this.node=o("div",t.look??`pa\
nel ${t.name}`),this.node.tabIndex=0,this.request=new Mt(e.store,t.asks??t.name),this.part=t.mount?.(this.node,e)??{paint:s=>t.
render?.(this.node,s,ie(t.name,e))}}get exists(){return this.panel.exists?.(this.view.store)??this.view.store.offers.includes(
this.name)}get isOffered(){let{offers:t,gone:e}=this.view.store;return this.panel.asks!==null&&!e&&t.includes(this.name)}opened(){
this.isOffered&&this.request.now(),this.part.opened?.()}touch(t){this.isOffered&&(this.panel.refresh??["append","patch",
"status"]).includes(t.op)&&this.request.soon(),this.part.touch?.(t)}closed(){this.request.cancel(),this.part.closed?.()}paint(){
try{this.part.paint(this.request.data)}catch(t){f(this.node,o("div","problem",`This panel failed: ${t}`))}}},Mt=class{constructor(t,e){
this.store=t,this.what=e,this.sent=0,this.timer=0}get data(){return this.store.panels.get(this.what)}now(){this.cancel(),
this.sent=performance.now(),this.store.say({kind:"need",what:this.what})}soon(){this.timer||=window.setTimeout(()=>this.
now(),Math.max(0,this.sent+1e3-performance.now()))}cancel(){clearTimeout(this.timer),this.timer=0}};var Ae=new Set(["rect","path","text"]),Ee=new Set("x y width height rx d fill fill-opacity stroke stroke-opacity stroke-\
dasharray text-anchor font-size font-weight".split(" "));function je({width:i,height:t,shapes:e}){let s=(r,a)=>{let l=document.
createElementNS("http://www.w3.org/2000/svg",r);for(let[h,d]of Object.entries(a))l.setAttribute(h,d);return l},n=s("svg",
{width:i,height:t,viewBox:`0 0 ${i} ${t}`});n.style.minWidth=`${Math.round(i*.65)}px`;for(let{tag:r,at:a,text:l,key:h}of e){
if(!Ae.has(r))continue;let d=s(r,Object.fromEntries(Object.entries(a).filter(([u])=>Ee.has(u))));d.dataset.key=h,d.textContent=
l,n.append(d)}return n}var lt=class{constructor(t){this.store=t,this.drawn=null,this.node=o("div","picture"),this.node.setAttribute(
"role","img"),this.node.tabIndex=0}followPath(){let t=this.node.getBoundingClientRect(),e=this.node.querySelector("rect:\
is([data-mark=now], [data-mark=waits]):not([fill=none])");if(!e)return;let s=e.getBoundingClientRect();(s.top<t.top||s.bottom>
t.bottom)&&(this.node.scrollTop+=(s.top+s.bottom-t.top-t.bottom)/2),(s.left<t.left||s.right>t.right)&&(this.node.scrollLeft+=
(s.left+s.right-t.left-t.right)/2)}paint(){let{drawing:t,marks:e}=this.store;if(this.node.hidden=!t,!!t){this.drawn!==t&&
(this.drawn=t,f(this.node,je(t)));for(let s of this.node.querySelectorAll("[data-key]")){let{key:n}=s.dataset,r=e[n.replace(
/^s:/,"n:")]??"";(s.dataset.mark??"")!==r&&(s.dataset.mark=r,n.startsWith("s:")?s.textContent=K[r]?.[0]??"":n.startsWith(
"c:")&&(s.textContent=r))}this.node.setAttribute("aria-label",[t.title,...this.standing()].join("; ")),this.followPath()}}standing(){
let{drawing:t,marks:e}=this.store,s=t.shapes.filter(({at:n,key:r})=>n["font-weight"]&&r.startsWith("n:"));return Object.
entries(K).filter(([n])=>n!=="was").map(([n,[,r]])=>[r,s.filter(({key:a})=>e[a]===n).map(({text:a})=>a)]).filter(([,n])=>n.
length).map(([n,r])=>`${n}: ${[...new Set(r)].join(", ")}`)}};var ht=class{constructor(t,e){this.store=t,this.view=e,this.chosen=null,this.node=o("div","summary"),this.button=p("","s\
mall fold",()=>{this.chosen=!this.folded,e.stale=!0,e.paint()})}get folded(){let{answer:t,status:e,box:s,cards:n}=this.store;
return s||!t||e.status!=="done"||[...n.values()].some(r=>this.store.isOpen(r))?!1:this.chosen??!0}paint(){let{folded:t}=this,
{answer:e,rows:s,earlier:n,status:r,box:a}=this.store,l=s.size+n;if(this.button.hidden=!!a||!e||r.status!=="done",this.button.
textContent=`${t?"▸":"▾"} ${l.toLocaleString("en")} ${l===1?"event":"events"}`,this.button.setAttribute("aria-expand\
ed",String(!t)),this.node.hidden=!t,!t||this.drawn===e)return;this.drawn=e;let h=e.question?o("div","asked",o("span","au\
thor","you"),gt(o("div","text",e.question))):null,d=st(e.html,this.store.manager);d.append(...(e.pages??[]).map(c=>C(c)),
P(e.shown)??"");let u=(e.members??[]).map(({who:c,text:m})=>o("div","asked member",o("span","author",c),o("div","text",m)));
f(this.node,h,...u,o("div","answered",o("span","author",e.who),gt(d)))}};var dt=class{constructor(t,e){this.panels=t,this.view=e,this.current=t[0],this.node=o("div","tabs"),this.node.setAttribute(
"role","tablist"),this.node.setAttribute("aria-label","Panels"),this.tabs=new Map(t.map(s=>[s,this.tab(s)])),this.node.append(
...this.tabs.values()),this.node.addEventListener("keydown",s=>this.onKey(s))}tab(t){let e=o("button","tab",t.title);return e.
type="button",e.id=v(),e.setAttribute("role","tab"),e.addEventListener("click",()=>this.select(t)),t.node.id=v(),t.node.
setAttribute("role","tabpanel"),t.node.setAttribute("aria-labelledby",e.id),e.setAttribute("aria-controls",t.node.id),e}select(t,e=!1){
this.current!==t&&this.current.closed(),this.current=t,this.paint(),t.opened(),t.paint(),this.view.schedule(),e&&this.tabs.
get(t).focus()}paint(){let t=this.panels.filter(e=>e.exists);t.includes(this.current)||(this.current=this.panels[0]);for(let[
e,s]of this.tabs)s.hidden=!t.includes(e),s.setAttribute("aria-selected",String(e===this.current)),s.tabIndex=e===this.current?
0:-1,e.node.hidden=e!==this.current;this.node.hidden=t.length<2}onKey(t){if(t.ctrlKey||t.metaKey||t.altKey||t.shiftKey)return;
let e=this.panels.filter(r=>!this.tabs.get(r).hidden),s=e.indexOf(this.current),n={ArrowLeft:s-1+e.length,ArrowRight:s+1,
Home:0,End:e.length-1};if(t.key in n)this.select(e[n[t.key]%e.length],!0);else if(t.key==="Escape")this.view.leave();else
return t.key!=="Enter"&&t.key!==" "?void 0:t.stopPropagation();t.preventDefault(),t.stopPropagation()}};var ut=class{constructor(t,e,s){this.store=t,this.missed=new W(t,s),this.frame=0,this.build(e),this.reset()}build(t){this.
title=o("span","title"),this.status=o("span","status"),this.stop=p("Stop","stop",()=>{this.stopping=!0,this.store.say({kind:"\
stop"}),this.schedule()}),this.notice=o("div","notice"),this.notice.setAttribute("role","note"),this.lanes=new tt(this.store),
this.picture=new lt(this.store),this.events=new ot(this.store,this),this.state=new it(this.store),this.cards=new X(this.
store,this),this.foot=o("div","foot"),this.said=o("div","hidden"),this.said.setAttribute("role","status");let e=o("div",
"head",this.title,this.status,this.stop);e.addEventListener("keydown",n=>n.stopPropagation());let s=this.store.listed.map(
se).filter(n=>n!==null);this.tabs=new dt(s.map(n=>new at(n,this)),this),this.log=this.tabs.panels.find(({name:n})=>n==="\
events"),this.tools=new rt(this.store,this),this.summary=new ht(this.store,this),this.bar=o("div","bar",this.summary.button,
this.tabs.node,this.tools.node),this.bar.addEventListener("keydown",n=>n.stopPropagation()),this.root=o("div","view",e,this.
notice,this.summary.node,this.bar,this.lanes.node,...this.tabs.panels.map(({node:n})=>n),this.cards.node,this.foot),this.
composer=this.store.box?new Q(this.store,this):null,this.composer&&(this.cards.node.after(this.composer.node),this.root.
dataset.box="",this.root.style.setProperty("--adknb-height",`${this.store.box.height}px`)),this.announcer=new V(this.store),
this.root.append(this.said,this.announcer.node),this.keys=new Z(this),this.box=o("div","root",this.root),t.append(this.box)}reset(){
this.events.reset(),this.missed.ask(),this.stale=!0,this.schedule()}touch(t){this.events.touch(t),this.announcer.touch(t),
this.missed.touch(t),t.op==="status"&&(this.stopping=!1),this.composer?.touch(t),t.op==="panel"&&(this.stale=!0);for(let e of[
this.tabs.current,this.tools])e.touch?.(t);(this.log.node.hidden||t.op!=="append"&&t.op!=="text")&&(this.stale=!0),this.
schedule()}schedule(){this.frame||=requestAnimationFrame(()=>{this.frame=0,this.paint()})}paint(){this.placed||=this.box.
isConnected;let t=this.events.paint();this.lanes.paint(),this.stale&&this.paintFrame(),this.stale=!1,this.lanes.node.hidden||=
this.summary.folded,this.tools.paint(this.events.words?this.events.shown().length:null,this.summary.folded),t()}paintFrame(){
let{store:t}=this,[e,s]=qt[t.status.status]??["",t.status.status],n=t.status.status==="running";this.title.textContent=t.
title,this.root.dataset.status=t.status.status;let r=t.box?0:[...t.rows.values()].filter(h=>h.kind==="call"&&h.ok===!1).
length;f(this.status,r?o("span","failed bad",`${r} tool${r===1?"":"s"} failed`):null,o("span","icon",e),` ${t.status.text||
s}`),this.stop.hidden=!n,this.stop.disabled=!!this.stopping,this.stop.textContent=this.stopping?"Stopping…":"Stop",this.
notice.textContent=t.notice,this.notice.hidden=!t.notice,this.foot.textContent=t.usage.text,this.foot.title=t.usage.title??
"",this.foot.hidden=!t.usage.text,this.summary.paint(),this.tabs.paint();let{folded:a}=this.summary,l=!(t.rows.size||t.state.
length||t.drawing);if(this.bar.hidden=l,this.bar.dataset.folded=a,a||l)for(let h of this.tabs.panels)h.node.hidden=!0;this.
tabs.node.hidden||=a,this.picture.paint(),this.state.paint(),!a&&!l&&this.tabs.current.paint(),this.cards.paint(),this.composer?.
paint()}repaint(){this.stale=!0,this.schedule()}showEvent(t){this.tabs.select(this.log),this.events.reveal(t)}unfold(){this.
summary.chosen=!1,this.stale=!0,this.paint()}leave(){let t=this.box.closest(".jp-Cell");document.activeElement?.blur(),t?.
focus({preventScroll:!0})}get isOrphan(){return this.placed&&!this.box.isConnected&&!this.box.closest(".jp-OutputArea")}moveTo(t){
t.append(this.box),this.reset()}remove(){cancelAnimationFrame(this.frame);for(let t of this.tabs.panels)t.closed();this.
store.views.delete(this),this.box.remove()}};y({name:"events",title:"Events",look:"panes",asks:null,exists:()=>!0,mount(i,t){return i.removeAttribute("tabindex"),i.append(
t.picture.node,t.events.node,t.state.node),{paint(){t.picture.node.parentNode!==i&&t.events.node.before(t.picture.node)}}}});var Nt=400,ct=22,pt={agent:["▸","agent"],model:["◆","model"],tool:["⚙","tool"],person:["⚠","person"]},Tt=class{constructor(t,e){
this.root=t,this.view=e,this.data=[],this.picture=o("div","bars"),this.table=o("details","twin-table",o("summary","","As\
 a table")),this.table.addEventListener("toggle",()=>this.paintTable()),t.append(this.picture,this.table),this.drawn="",
new ResizeObserver(()=>this.paint(this.data)).observe(t)}paint(t=[]){this.data=t;let e=this.root.clientWidth-24,s=`${e} ${JSON.
stringify(t)}`;if(this.root.hidden||e<=0||s===this.drawn)return;this.drawn=s,this.bars=t.slice(-Nt);let n=t.length>Nt?o(
"div","dim",`${t.length-Nt} earlier bars`):null;t.length?f(this.picture,n,this.draw(this.bars,e)):f(this.picture,o("div",
"dim","Nothing has been timed yet.")),this.table.hidden=!t.length,this.paintTable()}draw(t,e){let s=Math.max(1,...t.map(
c=>Math.max(c.begin,c.end??0))),n=Math.min(...t.map(c=>c.begin))>=s?0:Math.min(...t.map(c=>c.begin)),r=Math.min(230,Math.
round(e*.34)),a=e-r-62,l=c=>r+(c-n)/(s-n||1)*a,h=t.length*ct+22,d=O("svg",{width:e,height:h,viewBox:`0 0 ${e} ${h}`,role:"\
img"});d.setAttribute("aria-label",`${t.length} bars over ${b(s-n)}; the table below says the same`);let u=c=>s-n<1e3?b(
c):`${(c/1e3).toFixed(1)} s`;for(let c of Ce(n,s,Math.max(2,Math.floor(a/90))))d.append(O("path",{class:"adknb-grid",d:`\
M${l(c)} 16V${h}`})),d.append(O("text",{class:"adknb-tick",x:l(c),y:11,"text-anchor":"middle"},u(c-n)));return t.forEach(
(c,m)=>d.append(this.bar(c,20+m*ct,l,s,r,e))),d}bar(t,e,s,n,r,a){let[l,h]=[s(t.begin),Math.max(s(t.end??n),s(t.begin)+2)],
d=O("g",{class:"adknb-bar"});d.dataset.kind=t.kind,t.error&&(d.dataset.mark="failed");let u=4+Math.min(t.depth,8)*12,c=Math.
floor((r-u-8)/6.6),m=`${t.error?"✗":pt[t.kind]?.[0]??""} ${t.name}`;d.append(O("title",{},Me(t))),d.append(O("rect",{class:"\
adknb-hit",x:0,y:e,width:a,height:ct})),d.append(O("text",{x:u,y:e+15},m.length>c?`${m.slice(0,Math.max(1,c-1))}…`:m));
let k=t.kind==="agent"?6:12,g=(q,A,ft)=>O("rect",{class:`adknb-${ft}`,x:q,y:e+(ct-k)/2,width:Math.max(1,A-q),height:k,rx:2}),
x=t.first===null?null:s(t.first);x===null?d.append(g(l,h,t.kind==="model"?"waits":"work")):d.append(g(l,x,"waits"),g(x,h,
"work"));let I=t.end===null?"…":b(t.end-t.begin);return d.append(O("text",{class:"adknb-taken",x:h+5,y:e+15},I)),t.event&&
d.addEventListener("click",()=>this.view.showEvent(t.event)),d}paintTable(){if(!this.table.open||!this.bars)return;let t=o(
"tr","",...["what","name","of","begins","first piece","takes"].map(s=>o("th","",s))),e=this.bars.map(s=>o("tr","",...[s.
error?`${pt[s.kind]?.[1]} ✗ ${s.error}`:pt[s.kind]?.[1]??s.kind,s.name,s.agent,b(s.begin)||"0",s.first===null?"":b(s.first-
s.begin),s.end===null?ne(s):b(s.end-s.begin)].map(n=>o("td","",n))));this.table.querySelector("table")?.remove(),this.table.
append(o("table","table",o("thead","",t),o("tbody","",...e)))}};function O(i,t,e=""){let s=document.createElementNS("htt\
p://www.w3.org/2000/svg",i);for(let[n,r]of Object.entries(t))s.setAttribute(n,r);return s.textContent=e,s}function Ce(i,t,e){
let s=(t-i)/e,n=10**Math.floor(Math.log10(s||1)),r=[1,2,5,10].map(l=>l*n).find(l=>l>=.8*s),a=Math.max(r,t-i<1e3?1:100);return Array.
from({length:Math.floor((t-i)/a)+1},(l,h)=>i+h*a)}function ne(i){return i.kind==="person"?"still waits":"still at work"}
function Me(i){let t=i.end===null?ne(i):`took ${b(i.end-i.begin)}`,e=i.first===null?"":`, first piece after ${b(i.first-
i.begin)}`,s=`${pt[i.kind]?.[1]??i.kind} ${i.name}: began at ${b(i.begin)||"0 ms"}, ${t}${e}`;return i.error?`${s}; ${i.
error}`:s}y({name:"waterfall",title:"Waterfall",mount:(i,t)=>new Tt(i,t)});var Ne={user:"of this user",app:"of all",temp:"of this turn"},Lt=class{constructor(t,e){this.store=e.store,this.whole=void 0,
this.editing=null,this.sent=null,this.against=o("select","input"),this.against.setAttribute("aria-label","Compare with"),
this.against.addEventListener("change",()=>this.paint(this.whole)),this.against.addEventListener("keydown",s=>s.stopPropagation()),
this.add=p("Add a key","small",()=>this.edit("")),this.problem=o("div","problem"),this.problem.setAttribute("role","aler\
t"),this.rows=o("div","keys"),this.head=o("div","panel-head",this.against,this.add,this.problem),t.append(this.head,this.
rows)}get mayEdit(){return this.store.offers.includes("state")&&!this.store.gone}closed(){this.edit(null)}touch(t){t.op!==
"panel"||t.name!=="refused"||t.id!==this.sent||(this.problem.textContent=t.data,t.data||this.edit(null))}edit(t){this.editing=
t,this.sent=null,this.problem.textContent="",this.drawn=null,this.head.append(this.problem),t!==null&&this.paint(this.whole)}paint(t){
this.whole=t;let e=[...this.store.rows.values()].filter(d=>d.changes?.length).slice(-100),s=[["","changes since the star\
t"],...e.map(d=>[d.id,`changes by: ${B(d).slice(0,70)}`])],n=JSON.stringify(s);if(n!==this.choices){let d=this.against.value;
this.choices=n,f(this.against,...s.map(([u,c])=>Object.assign(o("option","",c),{value:u}))),this.against.value=s.some(([
u])=>u===d)?d:""}this.add.hidden=!this.mayEdit;let r=this.store.rows.get(this.against.value),a=r?r.changes.map(d=>({key:d.
key,kind:d.kind,old:d.old,value:d.new})):this.store.state,l=JSON.stringify([a,this.editing,this.mayEdit,t]);if(l===this.
drawn||this.editing!==null&&this.drawn)return;this.drawn=l;let h=this.editing===""?this.form("",""):null;f(this.rows,h,...a.
map(d=>this.row(d,!r))),this.rows.querySelector("input, textarea")?.focus()}row({key:t,kind:e,old:s,value:n},r){let[a,l]=t.
includes(":")?[t.split(":")[0],t.slice(t.indexOf(":")+1)]:["session",t],h=o("span","chip",a);h.title=Ne[a]??"of this ses\
sion",h.dataset.scope=a;let d=o("span","mark",e||" ");T[e]&&d.append(o("span","hidden",T[e]));let u=r&&e!=="-"?this.whole?.
find(I=>I.key===t):null,c=e==="~"||e==="-"?o("div","was",o("span","hidden","was "),s??""):null,m=e==="-"?null:o("div","v\
alue",u?.json??n??""),k=o("div","key-row",d,h,o("div","key-name",l),o("div","values",c,m));if(k.dataset.mark=e||"",t===this.
editing&&r)return this.form(t,u?.json??"");if(!r||e==="-"||a==="temp"||!this.mayEdit)return k;let g=p("Edit","small",()=>this.
edit(t));g.setAttribute("aria-label",`Edit ${t}`);let x=p("Delete","small",()=>this.say({kind:"state",key:t,text:null}));
return x.setAttribute("aria-label",`Delete ${t}`),k.append(o("div","key-buttons",g,x)),k}form(t,e){let s=t?null:this.input(
"Key","name, user:name or app:name",""),n=this.input("Value","JSON, or else text",e),r=()=>this.say({kind:"state",key:t||
s.value.trim(),text:n.value}),a=()=>{this.edit(null),this.paint(this.whole)},l=o("div","key-form",t?o("b","",t):s,n,p("S\
ave","go small",r),p("Cancel","small",a),this.problem);return l.addEventListener("keydown",h=>{h.stopPropagation(),h.key===
"Escape"?a():h.key==="Enter"&&!h.shiftKey&&!h.isComposing&&h.target.tagName!=="BUTTON"&&(h.preventDefault(),r())}),l}input(t,e,s){
let n=o(s.includes(`
`)?"textarea":"input","input");return n.value=s,n.placeholder=e,n.setAttribute("aria-label",`${t} (${e})`),n}say(t){this.
sent=t.key,this.problem.textContent=t.key?"":"the key has no name",t.key&&this.store.say(t)}};y({name:"state",title:"Sta\
te",look:"panel state-table",refresh:["state"],exists:i=>i.state.length>0,mount:(i,t)=>new Lt(i,t)});y({name:"graph",title:"Graph",asks:null,exists:i=>!!i.drawing,mount(i,t){let e=o("div","dim standing");return i.removeAttribute(
"tabindex"),i.append(e),{paint(){t.picture.node.parentNode!==i&&e.before(t.picture.node),e.textContent=t.picture.standing().
join(" · ")}}}});var _t=class{constructor(t,e){this.store=e.store,this.calls=[],this.chosen=null,this.which=o("select","input"),this.which.
setAttribute("aria-label","Model call"),this.which.addEventListener("change",()=>{this.chosen=Number(this.which.value),this.
want(),this.paint(this.calls)}),this.which.addEventListener("keydown",s=>s.stopPropagation()),this.body=o("div","prompt-\
body"),t.append(o("div","prompt-head",this.which),this.body),this.drawn=null}touch(t){t.op!=="panel"||t.name!=="prompts"||
(this.calls=t.data,this.want())}get at(){let t=this.calls.length-1;return this.chosen===null?t:Math.min(this.chosen,t)}want(){
this.at>=0&&this.store.say({kind:"need",what:"prompt",id:String(this.at)})}paint(t=[]){this.calls=t;let e=t.map(({agent:r,
model:a,ms:l,tokens:h},d)=>[`${d+1} of ${t.length}`,r,a,h?`${h.toLocaleString("en")} tokens`:"",b(l)].filter(Boolean).join(
" · "));this.labels!==e.join(`
`)&&(this.labels=e.join(`
`),f(this.which,...e.map((r,a)=>Object.assign(o("option","",r),{value:String(a)})))),this.which.hidden=!t.length,t.length&&
(this.which.value=String(this.at));let s=this.store.panels.get(`prompt/${this.at}`),n=JSON.stringify([t.length,s]);n!==this.
drawn&&(this.drawn=n,t.length?s?f(this.body,...this.call(s)):f(this.body,o("div","dim","…")):f(this.body,o("div","dim",
"No model has been asked yet.")))}call(t){let e=Object.entries(t.tokens).map(([l,h])=>`${h.toLocaleString("en")} ${l}`).
join(", "),s=[b(t.ms),t.first_ms===null?"":`first piece after ${b(t.first_ms)}`],n=[t.model,e&&`tokens: ${e}`,...s].filter(
Boolean).join(" · "),r=t.system.map(l=>l.text).join(""),a=(l,h)=>`${l} ${h}${l===1?"":"s"}`;return[o("div","dim facts",
n),t.error?o("div","problem",`✗ ${t.error}`):null,R("System instruction","",r,!0,o("div","sent",...t.system.flatMap(re))),
R("Tools",String(t.tools.length),t.tools,!1,...t.tools.map(Te)),R("History",a(t.messages,"message"),t.history.map(l=>l.text),
!0,...oe(t.history)),R("Settings","",t.settings&&Object.keys(t.settings),!1,M(t.settings)),R("Answer","",t.answer,!0,...oe(
t.answer)),R("Raw response","",t.raw,!1,t.raw?o("div","",L("Copy",()=>JSON.stringify(t.raw,null,2)),M(t.raw)):null)]}};function R(i,t,e,s,...n){
if(!e||!e.length&&typeof e!="object"||Array.isArray(e)&&!e.length)return null;let r=o("details","part",o("summary","",o(
"b","",i),t?o("span","dim",` ${t}`):null),...n);return r.open=s,r}function re({text:i,source:t}){if(!t)return[document.createTextNode(
i)];let e=o("mark","put",o("span","hidden",`put in for ${t}: `),i||"(nothing)",o("span","source",t));return e.title=`put\
 in for ${t}`,[e]}function Te({name:i,description:t,parameters:e}){return o("div","tool-sent",o("div","call",i),o("div",
"dim",t),e?M(e,"parameters",!1):null)}function oe(i){return i.map(({role:t,kind:e,text:s})=>{let n=o("div","said",o("spa\
n","role",t),o("span","dim",e),o("div","sent",...s.flatMap(re)));return n.dataset.kind=e,n})}y({name:"prompt",title:"Pro\
mpt",asks:"prompts",refresh:["patch","status"],mount:(i,t)=>new _t(i,t)});var Pt=class{constructor(t,e){this.store=e.store,this.root=t,this.requested=new Set,this.nodes=new Map}opened(){for(let t of this.
store.artifacts.keys())this.requested.has(t)||(this.requested.add(t),this.store.say({kind:"need",what:"artifact",id:t}))}touch(t){
t.op==="artifact"&&this.opened()}paint(){for(let t of this.store.artifacts.values()){let e=this.store.panels.get(`artifa\
ct/${t.id}`),s=this.nodes.get(t.id);if(s&&s.drawn===e)continue;let n=this.artifact({...t,...e},!!e);s?s.node.replaceWith(
n):this.root.append(n),this.nodes.set(t.id,{node:n,drawn:e})}}artifact(t,e){let s=`version ${t.version} · ${t.mime} · ${Le(
t.size)}`,n=o("div","artifact-head",o("b","",t.name),o("span","dim",s));if(t.data){let a=p("Download","small",()=>G(t.name.
split("/").pop(),t.mime,_e(t.data)));a.setAttribute("aria-label",`Download ${t.name}`),n.append(a)}let r=e?this.content(
t):o("div","dim","…");return o("div","artifact",n,r)}content(t){return t.image?St(t.image,t.alt):t.html?o("div","html",
_(t.html)):t.page?C(t.page,t.alt):t.text?o("pre","json",t.text):o("div","dim",t.data?"Nothing that a page can show; it c\
an be downloaded.":"Too large for a page.")}};function Le(i){return i<1e3?`${i} bytes`:i<1e6?`${(i/1e3).toFixed(1)} kB`:
`${(i/1e6).toFixed(1)} MB`}function _e(i){return Uint8Array.from(atob(i),t=>t.charCodeAt(0))}y({name:"artifacts",title:"\
Artifacts",asks:null,exists:i=>i.artifacts.size>0,mount:(i,t)=>new Pt(i,t)});function Bi(i,t=[]){let e=new z(i);for(let s of t)e.receive(s);return It(e.own_id,i.widget_manager),{show(s){let n=[...e.
views].find(a=>a.isOrphan);n?.moveTo(s);let r=n??new ut(e,s,i.widget_manager);return e.views.add(r),e.say({kind:"page",stays:J(
i.widget_manager)}),e.say({kind:"resync"}),()=>r.remove()}}}export{Bi as open,y as registerPanel};
