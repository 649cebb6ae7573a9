// The extension as a container of module federation, which the lab loads: https://webpack.js.org/concepts/module-federation
// The build puts the extension and the names of the lab's modules that it imports where the comments are. It carries
// none of them itself: an editor's extensions must share one copy of CodeMirror.

/** @typedef {{get(): Promise<() => unknown>, loaded?: unknown}} SharedModule */

(() => {
  /** @type {string[]} */
  const names = ["@codemirror/language", "@codemirror/state", "@codemirror/view", "@jupyterlab/codemirror", "@jupyterlab/notebook", "@jupyterlab/services", "@lezer/common", "@lezer/highlight"];
  const body = (/** @type {(name: string) => unknown} */ require, /** @type {{exports: object}} */ module) => {
    var R=Object.defineProperty;var ye=Object.getOwnPropertyDescriptor;var be=Object.getOwnPropertyNames;var we=Object.prototype.hasOwnProperty;var ve=(e,t)=>{for(var n in t)R(e,n,{get:t[n],enumerable:!0})},_e=(e,t,n,s)=>{if(t&&typeof t=="object"||typeof t=="funct\
ion")for(let o of be(t))!we.call(e,o)&&o!==n&&R(e,o,{get:()=>t[o],enumerable:!(s=ye(t,o))||s.enumerable});return e};var xe=e=>_e(R({},"__esModule",{value:!0}),e);var kt={};ve(kt,{default:()=>gt});module.exports=xe(kt);var L=require("@jupyterlab/codemirror"),I=require("@jupyterlab/notebook"),
he=require("@jupyterlab/services");var z=[1400,500],Se=200,Te="application/vnd.jupyter.widget-view+json",Ee=/\x1b\[[0-9;]*[A-Za-z]/g,T=class{constructor(t){
this._model=t,this.page=crypto.randomUUID(),this._known=[]}answer(t){return t.to!==this.page?null:t.ask==="read"?{cells:this.
_cells.map((n,s)=>P(n,s))}:this._known.includes(t.id)?null:(this._known=[...this._known,t.id].slice(-Se),this._model.readOnly?
{problem:"the notebook is read-only on the page"}:t.ask==="insert"?this._insert(t):this._change(t))}get _cells(){let{cells:t}=this.
_model;return Array.from({length:t.length},(n,s)=>t.get(s))}_insert({below:t,running:n,source:s,by:o}){let r=this._cells,
i=r.findIndex(({id:u})=>u===(t||n));if(t&&i<0)return{problem:"the cell above is not in the notebook any more; read the c\
ells again"};let a=i<0?r.length:i+1,{sharedModel:c}=this._model,l={cell_type:"code",source:s,metadata:{adk_nb:{written_by:o}}};
return J(c.undoManager,()=>c.insertCell(a,l)),{cell:P(this._model.cells.get(a),a)}}_change({cell:t,was:n,source:s,by:o}){
let r=this._cells.findIndex(h=>h.id===t);if(r<0)return{problem:"the cell is not in the notebook any more; read the cells\
 again"};let i=this._model.cells.get(r),a=i.sharedModel;if(a.getSource()!==n)return{problem:"the cell was changed meanwh\
ile; read it again"};if(!q(i))return{problem:"the cell is protected: its metadata has editable: false"};let c={...a.getMetadata(
"adk_nb"),changed_by:o},{from:l,to:u,text:d}=Oe(n,s);return J(a.undoManager??this._model.sharedModel.undoManager,()=>a.transact(
()=>{a.updateSource(l,u,d),a.setMetadata("adk_nb",c)})),{cell:P(i,r)}}};function J(e,t){e?.stopCapturing(),t(),e?.stopCapturing()}
var q=e=>e.sharedModel.getMetadata("editable")!==!1;function P(e,t){return{number:t+1,id:e.id,kind:e.type,count:e.executionCount??
null,source:e.sharedModel.getSource(),editable:q(e),...Me(e.outputs?.toJSON()??[])}}function Me(e){let t=e.filter(({output_type:s})=>s!==
"error").map(Ae),n=e.filter(({output_type:s})=>s==="error").map($e);return{output:V(t.filter(Boolean).join(`
`),z),error:V(n.join(`
`),z)}}function Ae({text:e,data:t}){if(e!==void 0)return y(e);let n=t??{},s=y(n["text/plain"]??"")||y(n["text/markdown"]??
""),o=Object.keys(n).filter(a=>a.startsWith("image/")),r=s?[]:Object.keys(n).filter(a=>!/^text\/(plain|markdown)$/.test(
a)),i=o.length>0?o:r.filter(a=>a!==Te&&y(n[a]??""));return[s,...i.map(a=>`[${a}]`)].filter(Boolean).join(`
`)}function $e({ename:e,evalue:t,traceback:n}){return y((n??[]).join(`
`))||`${e}: ${t}`}function y(e){return[e].flat().join("").replace(Ee,"").replace(/\r\n/g,`
`).replace(/^.*\r(?=.)/gm,"").trim()}function V(e,[t,n]){return e.length<=t+n?e:`${e.slice(0,t)}
… ${e.length-t-n} characters …
${e.slice(-n)}`}function Oe(e,t){let n=Math.min(e.length,t.length),s=0;for(;s<n&&e[s]===t[s];)s++;(S(e,s)||S(t,s))&&s--;
let o=0;for(;o<n-s&&e.at(-1-o)===t.at(-1-o);)o++;return(S(e,e.length-o)||S(t,t.length-o))&&o--,{from:s,to:e.length-o,text:t.
slice(s,t.length-o)}}function S(e,t){return t>0&&t<e.length&&(e.codePointAt(t-1)??0)>65535}var m=require("@codemirror/language"),v=require("@codemirror/state"),f=require("@lezer/common"),p=require("@lezer/highlight");var X={agent:{body:"prose",text:!1,options:{"-m":{value:!0,names:"model"},"--model":{value:!0,names:"model"},"-t":{value:!0,
names:"tool"},"--tools":{value:!0,names:"tool"},"--notebook":{},"--skills":{value:!0,names:"folder"},"--sub":{value:!0,names:"\
agent"},"--mode":{value:!0,choices:["chat","single_turn","task"]},"--kind":{value:!0,choices:["sequential","parallel","l\
oop","llm"]},"--description":{value:!0},"--output-key":{value:!0,names:"state"},"--output-schema":{value:!0,names:"varia\
ble"},"--input-schema":{value:!0,names:"variable"},"--max-iterations":{value:!0},"--set":{value:!0,names:"field"},"--raw":{},
"--root":{},"--replace":{}}},workflow:{body:"edges",text:!1,options:{"--description":{value:!0},"--max-concurrency":{value:!0},
"--root":{},"--replace":{}}},tool:{body:"python",text:!1,options:{"--confirm":{},"--thread":{},"--timeout":{value:!0},"-\
-effect":{value:!0,choices:["pure","idempotent","once"]},"--long-running":{},"--pause":{},"--only":{value:!0},"--replace":{},
"--rename":{value:!0},"--data":{value:!0,names:"data"},"--sql":{value:!0,names:"database"},"--openapi":{value:!0,names:"\
document"},"--mcp":{value:!0}}},chat:{body:"prose",text:!0,options:{"-s":{value:!0,names:"session"},"--session":{value:!0,
names:"session"},"--new":{},"--attach":{value:!0,names:"attachment"},"--error":{},"-t":{value:!0,names:"tool"},"--tools":{
value:!0,names:"tool"},"-m":{value:!0,names:"model"},"--model":{value:!0,names:"model"},"--max-cost":{value:!0},"-q":{},
"--quiet":{},"--height":{value:!0},"--static":{},"--yes":{},"--no":{},"--ask":{},"--raw":{},"--record":{},"--replay":{}}},
agents:{body:"",text:!1,options:{"--graph":{names:"agent"},"--show":{value:!0,names:"agent"},"--rm":{value:!0,names:"age\
nt"},"--json":{}}},tools:{body:"",text:!1,options:{"--schema":{names:"tool"}}},state:{body:"",text:!1,options:{"-s":{value:!0,
names:"session"},"--session":{value:!0,names:"session"},"--del":{value:!0,names:"state"},"--json":{},"--diff":{}}},session:{
body:"",text:!1,options:{"--as":{value:!0},"-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"},"--at":{
value:!0},"--replace":{},"--edited":{}}},trace:{body:"",text:!1,options:{"-s":{value:!0,names:"session"},"--session":{value:!0,
names:"session"},"--last":{},"--waterfall":{},"--why":{},"--raw":{value:!0},"--diff":{value:!0,names:"turn"},"--export":{
value:!0}}},rewind:{body:"",text:!1,options:{"--at":{value:!0},"--dry-run":{},"--rerun":{},"-s":{value:!0,names:"session"},
"--session":{value:!0,names:"session"}}},confirm:{body:"",text:!1,options:{"-s":{value:!0,names:"session"},"--session":{
value:!0,names:"session"},"--yes":{},"--no":{},"--reask":{},"--old":{},"--all":{},"--edit":{value:!0},"--payload":{value:!0},
"--reason":{value:!0}}},doctor:{body:"",text:!1,options:{}},eval:{body:"table",text:!1,options:{"--cases":{value:!0,names:"\
variable"},"--metrics":{value:!0},"--judge":{value:!0,names:"model"},"--repeats":{value:!0},"--min":{value:!0},"--budget":{
value:!0},"--max-concurrency":{value:!0},"--stub":{value:!0},"--yes":{},"--no":{},"--as":{value:!0},"--failed":{}}},map:{
body:"",text:!1,options:{"--over":{value:!0,names:"variable"},"--message":{value:!0},"--schema":{value:!0,names:"variabl\
e"},"--budget":{value:!0},"--max-concurrency":{value:!0},"--yes":{},"--no":{}}},record:{body:"",text:!1,options:{"--file":{
value:!0}}},replay:{body:"",text:!1,options:{"--file":{value:!0}}},serve:{body:"",text:!1,options:{"--port":{value:!0},"\
--share-sessions":{},"--with-notebook":{},"--stop":{}}},key:{body:"",text:!1,options:{"--from":{value:!0,choices:["env",
"colab","kaggle","dotenv","keyring","ask"]},"--forget":{}}},export:{body:"",text:!1,options:{}}};var A=X,oe=Object.keys(A).join("|"),Ce=new RegExp(`^%%(${oe})(?![\\w.])`),re=new RegExp(`^([ \\t]*(?:[^\\s=%()#][^=%()#]*(\
=)[ \\t]*)?)(%%?)(${oe})(?=\\s|\\?|;|$)(\\?{0,2})`),je=3+Math.max(...Object.keys(A).map(e=>e.length)),Le=/\s--kind[\s=]+["']?(?!llm\b)\w/,
Ie=/^kind[ \t]*:[ \t]*["']?(?!llm\b)\w/m,Z=/^---[ \t]*$/,De=new Set(["agent","tool","variable"]);function $(e){let t=e.length-
e.trimStart().length,n=Ce.exec(e.slice(t,t+je));if(n===null||t>0&&e[t-1]!==`
`)return Q(e,0);let s=A[n[1]],o=E(e,t),r={type:"magic",from:t,to:o};if(s.body==="python"||s.body===""){let d=Q(e,o+1)?.sections??
U(e,o+1,e.length);return{sections:[r,...d],braces:""}}let i=s.text?[]:Pe(e,o),a=e.slice(t,i.at(-1)?.to??o),c=t+a.length+
1,l=Re(s,a,e.slice(c)),u=l==="prose"&&!/\s--raw(?!\S)/.test(e.slice(t,o));return{sections:[r,...i,...c<e.length?[{type:l,
from:c,to:e.length}]:[]],braces:u?s.text?"variables":"all":""}}function Re(e,t,n){return e.options["--kind"]&&(Le.test(t)||
Ie.test(t))?"team":e.body==="table"&&!/^\s*\|/.test(n)?"yaml":e.body}function Q(e,t){if(!e.includes("%",t))return null;let n=[],
s=t;for(let o=t;o<e.length;){let r=E(e,o),i=e.slice(o,r);i.includes("%")&&re.exec(i)?.[3]==="%"&&(n.push(...U(e,s,o),{type:"\
magic",from:o,to:r}),s=r+1),o=r+1}return n.length===0?null:(n.push(...U(e,s,e.length)),{sections:n,braces:""})}function U(e,t,n){
return e.slice(t,n).trim()?[{type:"python",from:t,to:n}]:[]}function Pe(e,t){let n=t+1+(/^\s*?(?=\S)/.exec(e.slice(t+1))?.[0].
length??0),s=E(e,n);if(!Z.test(e.slice(n,s)))return[];for(let o=s+1;o<e.length;){let r=E(e,o);if(Z.test(e.slice(o,r))){let i=[
{from:n,to:s},{from:o,to:r}].map(c=>({type:"fence",...c})),a=s+1<o?[{type:"yaml",from:s+1,to:o}]:[];return[i[0],...a,i[1]]}
o=r+1}return[]}function E(e,t){let n=e.indexOf(`
`,t);return n<0?e.length:n}var ee=/[^\s"']*(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+)*/y,te=/\s*[^\W\d]\w*\s*(<<)(?=\s|$)/y,
W=/^--?[^\W\d]/;function O(e){let t=re.exec(e);if(t===null)return[];let[n,s,o,r,i,a]=t,c=A[i],l=s.length,u=o?[{from:s.indexOf(
"="),to:s.indexOf("=")+1,type:"operator"}]:[];if(u.push({from:l,to:n.length-a.length,type:"magic"}),a)return[...u,{from:n.
length-a.length,to:n.length,type:"operator"}];let d={line:e,mark:r+i,magic:c,isCell:r==="%%",tokens:u};return Ue(d,n.length)}
function Ue({line:e,mark:t,magic:n,isCell:s,tokens:o},r){let i=n.text&&!s,a=n.body==="edges"||n.body==="prose"&&!n.text,
c=0;for(let l=b(e,Be(e,r,n,o));l<e.length;l=b(e,l)){let u=e.slice(l),d=We(u,i);if(d)return[...o,{from:l,to:d.type==="com\
ment"?e.length:l+1,type:d.type}];if(/^--(?=\s|$)/.test(u)){if(o.push({from:l,to:l+2,type:"operator"}),i)return[...o,...se(
e,b(e,l+2),!1)];l+=2}else if(W.test(u))l=Fe(e,l,t,n,o);else{let h=M(e,l),D=e.slice(l,h);if(i&&(c>0||!W.test(e.slice(h).trimStart())))
return[...o,...se(e,l,c===0)];o.push({from:l,to:h,type:Ke(D,a&&c===0)}),c+=1,l=h}}return o}function We(e,t){return/^;\s*$/.
test(e)?{type:"operator"}:!t&&e[0]==="#"?{type:"comment"}:null}function Be(e,t,n,s){te.lastIndex=t;let o=n.text?te.exec(
e):null;if(o===null)return t;let r=t+o[0].length;return s.push({from:r-o[1].length,to:r,type:"operator"}),r}function Fe(e,t,n,s,o){
let r=M(e,t),i=e.slice(t,r).indexOf("="),a=i<0?r:t+i,c=e.slice(t,a),l=Object.hasOwn(s.options,c)?s.options[c]:null;if(o.
push(l?{from:t,to:a,type:"option"}:{from:t,to:a,type:"wrong",problem:`${n} has no option ${c}`}),i>=0)return o.push({from:a,
to:a+1,type:"operator"}),ne(e,a+1,r,l,o),r;let u=b(e,r);if(!l?.value||u===e.length||W.test(e.slice(u)))return r;let d=M(
e,u);return ne(e,u,d,l,o),d}function ne(e,t,n,s,o){let r=e.slice(t,n);if(t!==n)if(s?.choices&&!s.choices.includes(r.replace(
/^(["'])(.*)\1$/,"$2")))o.push({from:t,to:n,type:"wrong",problem:`${r} is not one of ${s.choices.join(", ")}`});else if(De.
has(s?.names??"")&&/^\w+(?:,\w*)*$/.test(r))for(let{0:i,index:a}of r.matchAll(/\w+/g))o.push({from:t+a,to:t+a+i.length,type:"\
value",names:s?.names});else o.push({from:t,to:n,type:/["']/.test(r)?"string":"value"})}function Ke(e,t){return/["']/.test(
e)?"string":t?"definition":"word"}function se(e,t,n){let s=M(e,t),o=n&&/^\w+$/.test(e.slice(t,s)),r=o?b(e,s):t,i=e.trimEnd().
length,a=e[i-1]===";"?i-1:i,c=o?[{from:t,to:s,type:"address",names:"agent"}]:[];return r<a&&c.push({from:r,to:a,type:"te\
xt"}),r<=a&&a<i&&c.push({from:a,to:i,type:"operator"}),c}function b(e,t){return e.length-e.slice(t).trimStart().length}function M(e,t){
ee.lastIndex=t;let n=t+(ee.exec(e)?.[0].length||1);return n>t+1&&/^;\s*$/.test(e.slice(n-1))?n-1:n}var Ge=/(?<comment>#.*)|-\[(?<routes>[^\]]*)\]->|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>[(),])|(?<wrong>[^\s\w(),#]+)/gu,
He=/(?<comment>#.*)|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>,)|(?<wrong>[^\s\w,#]+)/gu,Ye=/^[ \t]*(until)[ \t]*(:)/,
ze=/(?<string>'[^']*'|"[^"]*")|(?<number>\b\d+(?:\.\d+)?\b)|(?<keyword>\b(?:and|or|not|in|is|if|else|True|False|None)\b)|(?<operator>[<>=!+\-*/%]+)/g,
Je=new Set(["START","END"]);function N(e){return ae(e,Ge,"node")}function C(e){let t=Ye.exec(e);if(t===null)return ae(e,
He,"agent");let[n,s]=t;return[{from:n.indexOf(s),to:n.indexOf(s)+s.length,type:"keyword"},{from:n.length-1,to:n.length,type:"\
operator"},...[...e.slice(n.length).matchAll(ze)].map(o=>{let r=n.length+o.index,[i]=Object.entries(o.groups??{}).find(([
a,c])=>c);return{from:r,to:r+o[0].length,type:i}})]}function ae(e,t,n){return[...e.matchAll(t)].flatMap(s=>{let{comment:o,
routes:r,arrow:i,name:a,wrong:c}=s.groups??{},[l,u]=[s.index,s.index+s[0].length];return o?[{from:l,to:u,type:"comment"}]:
i?[{from:l,to:u,type:"arrow"}]:Je.has(a)?[{from:l,to:u,type:"end"}]:a?[{from:l,to:u,type:"name",names:n}]:c?[{from:l,to:u,
type:"wrong",problem:`${c} is neither a name nor an arrow`}]:r===void 0?[{from:l,to:u,type:"separator"}]:[{from:l,to:l+2,
type:"arrow"},{from:l+2,to:u-3,type:"string"},{from:u-3,to:u,type:"arrow"}].filter(d=>d.from<d.to)})}function ie(e,t){return[
...e.matchAll(/(?<!\\)\||(?:\\\||[^|\s])(?:\\\||[^|])*?(?=\s*(?:\||$))/g)].map(({0:n,index:s})=>{let o=n==="|"||t===1&&/^:?-+:?$/.
test(n);return{from:s,to:s+n.length,type:o?"separator":t===0?"heading":"cell"}})}var B="[\\p{L}_][\\p{L}\\p{N}_]*",Ve=`${B}\
(?:\\.${B}|\\[(?:-?\\d+|'[^'\\n\\]]*'|"[^"\\n\\]]*")\\])*`,qe=new RegExp(["\\\\\\{+[^{}\\n]*\\}+","\\{{3,}[^{}]*\\}+",`\\\
{\\{(?<variable>${Ve})\\}\\}`,"\\{\\{[^{}\\n]*\\}\\}",`(?<![$\\{])\\{(?<key>(?:(?:app|user|temp):)?${B}\\??|artifact\\.[^\\\
s{}?]+\\??)\\}(?!\\})`].join("|"),"gu");function le(e,{keys:t}){return e.includes("{")?[...e.matchAll(qe)].flatMap(n=>{let{
variable:s,key:o}=n.groups??{},r={from:n.index,to:n.index+n[0].length};return s?[{...r,type:"variable",name:s.split(/[.[]/)[0],
needed:!0}]:!o||!t?[]:[{...r,type:"state",name:o.replace(/\?$/,""),needed:!/\?$|^artifact\./.test(o)}]}):[]}var _={magic:p.tags.operator,option:p.tags.attributeName,operator:p.tags.operator,definition:p.tags.definition(p.tags.variableName),
string:p.tags.string,comment:p.tags.comment,arrow:p.tags.punctuation,end:p.tags.standard(p.tags.variableName),keyword:p.tags.
keyword,number:p.tags.number,separator:p.tags.bracket,heading:p.tags.heading1};function F(e){return m.StreamLanguage.define(
{startState:()=>({row:0,tokens:[]}),copyState:t=>({...t}),token(t,n){t.sol()&&(n.tokens=e(t.string,n.row++));let s=n.tokens.
find(({to:o})=>o>t.pos);return s&&s.from<=t.pos?(t.pos=s.to,s.type in _?s.type:null):(s?t.pos=s.from:t.skipToEnd(),null)},
tokenTable:_})}var Xe={edges:F(N).parser,team:F(C).parser,table:F(ie).parser},G=(0,m.defineLanguageFacet)(),Ze=f.NodeType.
define({id:0,name:"Document",top:!0,props:[[m.languageDataProp,G]]}),Qe=(0,p.styleTags)({fence:p.tags.bracket,...Object.
fromEntries(Object.entries(_).map(([e,t])=>[`${e}-token`,t]))}),ce=Object.fromEntries(["magic","fence","yaml","prose","e\
dges","team","table","python",...Object.keys(_).map(e=>`${e}-token`)].map((e,t)=>[e,f.NodeType.define({id:t+1,name:e,props:[
Qe]})]));function et({type:e,from:t,to:n},s){let o=e==="magic"?O(s.slice(t,n)).filter(a=>a.type in _):[],r=o.map(a=>new f.Tree(
ce[`${a.type}-token`],[],[],a.to-a.from)),i=o.map(a=>a.from);return new f.Tree(ce[e],r,i,n-t)}var H=class extends f.Parser{constructor(t){
super(),this.wrap=t}createParse(t,n,s){let o={parsedPos:t.length,stoppedAt:null,stopAt(){},advance(){let r=t.read(0,t.length),
i=$(r)?.sections??[],a=i.map(l=>et(l,r)),c=i.map(({from:l})=>l);return new f.Tree(Ze,a,c,t.length)}};return this.wrap(o,
t,n,s)}};function K(e){let t,n;return()=>t!==void 0?t:(n??=e().catch(()=>null).then(s=>{t=s}),m.ParseContext.getSkippingParser(
n))}var w=v.StateField.define({create:e=>$(e.doc.toString()),update:(e,t)=>t.docChanged?$(t.newDoc.toString()):e});function ue(e){
let t={...Object.fromEntries(Object.entries(Xe).map(([i,a])=>[i,()=>a])),yaml:K(()=>e("YAML")),prose:K(()=>e("Markdown")),
python:K(()=>e("ipython"))},n=(0,f.parseMixed)(i=>{let a=t[i.name]?.();return a?{parser:a}:null}),s=new H(n),o=new m.Language(
G,s,[],"adk-nb"),r=new m.Language(G,s);return[w,v.Prec.highest(m.language.computeN([w],i=>i.field(w)?[o]:[])),v.Prec.lowest(
m.language.of(r))]}var k=require("@codemirror/state"),g=require("@codemirror/view");var de=k.StateEffect.define(),tt={magic:O,edges:N,team:C},nt={agent:e=>`this notebook has no agent ${e} yet`,node:e=>`th\
is notebook has no agent, tool or function ${e} yet`,state:e=>`the session's state has no key ${e} yet`,tool:e=>`this no\
tebook has no tool ${e} yet`,variable:e=>`this notebook has no variable ${e} yet`};function st(e,t){let n=e.field(w);return(n?.
sections??[]).flatMap(s=>{let o=Math.max(s.from,e.doc.lineAt(Math.min(t.from,e.doc.length)).from),r=Math.min(s.to,t.to);
if(o>=r)return[];if(s.type==="prose"&&n?.braces)return pe(e.sliceDoc(o,r),o,n.braces==="all");let i=tt[s.type];return i?
ot(e.sliceDoc(o,r),o).flatMap(([a,c])=>rt(a,c,i(a))):[]})}function ot(e,t){let n=t;return e.split(`
`).map(s=>(n+=s.length+1,[s,n-s.length-1]))}function rt(e,t,n){let s=/\s--raw(?!\S)/.test(e);return n.flatMap(({from:o,to:r,
type:i,names:a,problem:c})=>{let l={from:t+o,to:t+r};return i==="text"?s?[]:pe(e.slice(o,r),l.from,!1):c?[{...l,type:i,problem:c}]:
a?[{...l,type:i,names:a,name:e.slice(o,r)}]:[]})}function pe(e,t,n){return le(e,{keys:n}).map(({from:s,to:o,type:r,name:i,
needed:a})=>({from:t+s,to:t+o,type:r,...a&&{names:r,name:i}}))}function at({type:e,names:t,name:n,problem:s},o){let r=s??
(o===!1&&e!=="address"&&nt[t??""]?.(n??"")),i=[e==="state"||e==="variable"?`adknb-mark-${e}`:"",e==="address"&&o?"adknb-\
mark-agent":"",s?"adknb-mark-wrong":r?"adknb-mark-unknown":""].filter(Boolean);return i.length===0?null:g.Decoration.mark(
{class:i.join(" "),...r&&{attributes:{title:r}}})}var it=g.EditorView.baseTheme({".adknb-mark-state, .adknb-mark-variabl\
e":{borderRadius:"3px",boxShadow:"0 0 0 1px color-mix(in srgb, currentColor 16%, transparent)",backgroundColor:"color-mi\
x(in srgb, currentColor 8%, transparent)"},".adknb-mark-state":{color:"var(--jp-mirror-editor-variable-3-color)"},".adkn\
b-mark-variable":{color:"var(--jp-mirror-editor-property-color)"},".adknb-mark-agent":{color:"var(--jp-mirror-editor-def\
-color)"},".adknb-mark-unknown":{textDecoration:"underline dotted var(--jp-warn-color1)",textUnderlineOffset:"3px"},".ad\
knb-mark-wrong":{textDecoration:"underline wavy var(--jp-error-color1)",textUnderlineOffset:"3px"}});function me(e){class t{constructor(o){
this.view=o,this.names=null,this.marks=[],this.decorations=g.Decoration.none,this.draw()}update(o){let r=o.transactions.
some(i=>i.effects.some(a=>a.is(de)));(o.docChanged||o.viewportChanged||r)&&this.draw()}draw(){let{state:o,visibleRanges:r}=this.
view;this.marks=r.flatMap(a=>st(o,a)),this.marks.some(({name:a})=>a)&&this.connect();let i=new k.RangeSetBuilder;for(let a of this.
marks){let c=at(a,a.name?this.names?.isKnown(a.names??"",a.name):void 0);c&&i.add(a.from,a.to,c)}this.decorations=i.finish()}connect(){
this.names??=e(),this.names?.join(this)}wanted(){return this.marks.filter(({name:o})=>o).map(({names:o,name:r})=>[o,r])}refresh(){
this.view.dispatch({effects:de.of(null)})}destroy(){this.names?.leave(this)}}let n=g.ViewPlugin.fromClass(t,{decorations:s=>s.
decorations});return[it,k.Prec.highest(n)]}var j=class{constructor(t){this._lookUp=t,this._readers=new Set,this._known=new Map,this._isStale=!1,this._isAsking=!1,this.
_isAskedAgain=!1,this._kernel=0,this._timer=void 0}join(t){this._readers.add(t),this._missing().length>0&&this._askSoon()}leave(t){
this._readers.delete(t)}isKnown(t,n){return this._known.get(`${t} ${n}`)}expire(){this._isStale=!0,this._askSoon()}forget(){
this._kernel+=1,this._isAsking=this._isAskedAgain=!1,this._known.clear();for(let t of[...this._readers])t.refresh()}dispose(){
this._kernel+=1,clearTimeout(this._timer),this._readers.clear()}_missing(){let t=[...this._readers].flatMap(n=>n.wanted());
return this._isStale?t:t.filter(([n,s])=>!this._known.has(`${n} ${s}`))}_askSoon(){clearTimeout(this._timer),this._readers.
size>0&&(this._timer=setTimeout(()=>{this._ask()},400))}async _ask(){if(this._isAsking){this._isAskedAgain=!0;return}let t=this.
_missing().slice(0,500);if(t.length===0)return;let n={};for(let[i,a]of t)(n[i]??=[]).push(a);let[s,o]=[this._isStale,this.
_kernel];this._isAsking=!0,this._isStale=this._isAskedAgain=!1;let r=await this._lookUp(n).catch(()=>null);if(o===this._kernel){
this._isAsking=!1,s&&this._known.clear();for(let[i,a]of t)this._known.set(`${i} ${a}`,r?.[i]?.includes(a));for(let i of[
...this._readers])i.refresh();this._isAskedAgain&&this._askSoon()}}};var lt=3,x=new WeakMap,ct='__import__("sys").modules["adk_nb.notebook.magics.extension"].known_names',ut="adk_nb.names",
dt="adk_nb.cells",pt="adk_nb_cells";async function mt(e,t){if(!e||(await e.info).language_info.name!=="python")return null;
let n={code:"",silent:!0,store_history:!1,allow_stdin:!1,stop_on_error:!1},s={names:`${ct}(${JSON.stringify(t)})`};for(let o=0;o<
lt;o++){let{content:r}=await e.requestExecute({...n,user_expressions:s}).done;if(r.status==="ok")return r.user_expressions?
r.user_expressions.names?.data?.["application/json"]??null:ft(e,t);if(r.status!=="aborted")return null}return null}function ft(e,t){
return new Promise(n=>{let s=e.createComm(ut);s.onClose=()=>n(null),s.onMsg=({content:o})=>{n(o.data),s.close()},s.open(
t)})}function ht({context:e,sessionContext:t},n){let s=new T(e.model),o=()=>n.find(i=>i.context===e&&i.isVisible)!==void 0&&
window.document.visibilityState==="visible";t.iopubMessage.connect((r,{header:i,content:a})=>{let c=t.session?.kernel;if(!c||
i.msg_type!=="comm_msg"||a.comm_id!==dt||!a.data)return;let l=a.data,d=l.ask==="who"?{session:c.clientId,seen:o()}:s.answer(
l);if(!d)return;let h={...d,id:l.id,page:s.page};if(l.channel){let Y=new BroadcastChannel(l.channel);Y.postMessage(JSON.
stringify(h)),Y.close();return}let{clientId:D,username:ge}=c,ke={channel:"control",msgType:pt,session:D,username:ge,content:h};
c.sendControlMessage(he.KernelMessage.createMessage(ke),!1)})}function fe(e,t){let{context:n,sessionContext:s}=e,o=n.model.
sharedModel;if(x.has(o))return;let r=new j(i=>mt(s.session?.kernel,i));x.set(o,r),ht(e,t),s.kernelChanged.connect(()=>r.
forget()),s.statusChanged.connect((i,a)=>{(a==="restarting"||a==="autorestarting")&&r.forget()}),n.disposed.connect(()=>{
r.dispose(),x.delete(o)})}var gt={id:"adk-nb:cells",description:"Highlights the cells of adk_nb, and lets its agents rea\
d and write cells.",autoStart:!0,requires:[L.IEditorExtensionRegistry,L.IEditorLanguageRegistry],optional:[I.INotebookTracker],
activate(e,t,n,s){let o=ue(async r=>(await n.getLanguage(r))?.support?.language.parser??null);t.addExtension({name:"adk-\
nb:cells",factory:({model:r})=>{if(r.type!=="code")return null;let i=[o,me(()=>x.get(r.sharedModel.notebook??r)??null)];
return{instance:()=>i,reconfigure:()=>null}}}),s?.forEach(r=>fe(r,s)),s?.widgetAdded.connect((r,i)=>fe(i,s)),I.NotebookActions.
executed.connect((r,{notebook:i})=>{i.model&&x.get(i.model.sharedModel)?.expire()})}};
  };

  /** @type {Record<string, Record<string, SharedModule>>} */
  let scope = {};

  const numbers = (/** @type {string} */ version) => version.split(/[.+-]/).map((part) => Number(part) || 0);
  const isOlder = (/** @type {string} */ a, /** @type {string} */ b) => {
    const [left, right] = [numbers(a), numbers(b)];
    const place = [0, 1, 2].find((index) => left[index] !== right[index]);
    return place !== undefined && left[place] < right[place];
  };

  /** The copy that the lab uses: the one that is loaded, else the newest. @param {string} name */
  const shared = async (name) => {
    const versions = scope[name] ?? {};
    const version = Object.keys(versions).reduce(
      (best, next) => (!best || (!versions[best].loaded && isOlder(best, next)) ? next : best),
      "",
    );
    if (!version) throw new Error(`adk-nb: this JupyterLab has no ${name}`);
    versions[version].loaded = 1;
    return /** @type {const} */ ([name, (await versions[version].get())()]);
  };

  const global = /** @type {{_JUPYTERLAB?: Record<string, object>}} */ (/** @type {unknown} */ (window));
  global._JUPYTERLAB ??= {};
  global._JUPYTERLAB["adk-nb"] = {
    /** @param {typeof scope} lab */
    init(lab) {
      scope = lab;
    },
    async get() {
      const modules = Object.fromEntries(await Promise.all(names.map(shared)));
      const module = { exports: {} };
      body((name) => modules[name], module);
      return () => module.exports;
    },
  };
})();
