// The extension as a container of module federation, which the lab loads: https://webpack.js.org/concepts/module-federation
// The build puts the extension and the names of the lab's modules that it imports where the comments are. It carries
// none of them itself: an editor's extensions must share one copy of CodeMirror.

/** @typedef {{get(): Promise<() => unknown>, loaded?: unknown}} SharedModule */

(() => {
  /** @type {string[]} */
  const names = ["@codemirror/language", "@codemirror/state", "@codemirror/view", "@jupyterlab/codemirror", "@jupyterlab/notebook", "@lezer/common", "@lezer/highlight"];
  const body = (/** @type {(name: string) => unknown} */ require, /** @type {{exports: object}} */ module) => {
    var L=Object.defineProperty;var ae=Object.getOwnPropertyDescriptor;var ie=Object.getOwnPropertyNames;var le=Object.prototype.hasOwnProperty;var ue=(e,t)=>{for(var n in t)L(e,n,{get:t[n],enumerable:!0})},ce=(e,t,n,o)=>{if(t&&typeof t=="object"||typeof t=="funct\
ion")for(let s of ie(t))!le.call(e,s)&&s!==n&&L(e,s,{get:()=>t[s],enumerable:!(o=ae(t,s))||o.enumerable});return e};var pe=e=>ce(L({},"__esModule",{value:!0}),e);var Ve={};ue(Ve,{default:()=>ze});module.exports=pe(Ve);var N=require("@jupyterlab/codemirror"),j=require("@jupyterlab/notebook");var d=require("@codemirror/language"),b=require("@codemirror/state"),f=require("@lezer/common"),p=require("@lezer/highlight");var q={agent:{body:"prose",text:!1,options:{"-m":{value:!0,names:"model"},"--model":{value:!0,names:"model"},"-t":{value:!0,
names:"tool"},"--tools":{value:!0,names:"tool"},"--notebook":{},"--skills":{value:!0,names:"folder"},"--sub":{value:!0,names:"\
agent"},"--mode":{value:!0,choices:["chat","single_turn","task"]},"--kind":{value:!0,choices:["sequential","parallel","l\
oop","llm"]},"--description":{value:!0},"--output-key":{value:!0,names:"state"},"--output-schema":{value:!0,names:"varia\
ble"},"--input-schema":{value:!0,names:"variable"},"--max-iterations":{value:!0},"--set":{value:!0,names:"field"},"--raw":{},
"--root":{},"--replace":{}}},workflow:{body:"edges",text:!1,options:{"--description":{value:!0},"--max-concurrency":{value:!0},
"--root":{},"--replace":{}}},tool:{body:"python",text:!1,options:{"--confirm":{},"--thread":{},"--timeout":{value:!0},"-\
-effect":{value:!0,choices:["pure","idempotent","once"]},"--long-running":{},"--pause":{},"--only":{value:!0},"--replace":{},
"--rename":{value:!0},"--openapi":{value:!0,names:"document"},"--mcp":{value:!0}}},chat:{body:"prose",text:!0,options:{"\
-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"},"--new":{},"--attach":{value:!0,names:"attachment"},
"--error":{},"-t":{value:!0,names:"tool"},"--tools":{value:!0,names:"tool"},"-m":{value:!0,names:"model"},"--model":{value:!0,
names:"model"},"--max-cost":{value:!0},"-q":{},"--quiet":{},"--height":{value:!0},"--static":{},"--yes":{},"--no":{},"--\
ask":{},"--raw":{},"--record":{},"--replay":{}}},agents:{body:"",text:!1,options:{"--graph":{names:"agent"},"--show":{value:!0,
names:"agent"},"--rm":{value:!0,names:"agent"},"--json":{}}},tools:{body:"",text:!1,options:{"--schema":{names:"tool"}}},
state:{body:"",text:!1,options:{"-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"},"--del":{value:!0,
names:"state"},"--json":{},"--diff":{}}},session:{body:"",text:!1,options:{"--as":{value:!0},"-s":{value:!0,names:"sessi\
on"},"--session":{value:!0,names:"session"},"--at":{value:!0},"--replace":{},"--edited":{}}},trace:{body:"",text:!1,options:{
"-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"},"--last":{},"--waterfall":{},"--why":{},"--raw":{
value:!0},"--diff":{value:!0,names:"turn"},"--export":{value:!0}}},rewind:{body:"",text:!1,options:{"--at":{value:!0},"-\
-dry-run":{},"--rerun":{},"-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"}}},confirm:{body:"",text:!1,
options:{"-s":{value:!0,names:"session"},"--session":{value:!0,names:"session"},"--yes":{},"--no":{},"--reask":{},"--old":{},
"--all":{},"--edit":{value:!0},"--payload":{value:!0},"--reason":{value:!0}}},doctor:{body:"",text:!1,options:{}},eval:{
body:"table",text:!1,options:{"--cases":{value:!0,names:"variable"},"--metrics":{value:!0},"--judge":{value:!0,names:"mo\
del"},"--repeats":{value:!0},"--min":{value:!0},"--budget":{value:!0},"--max-concurrency":{value:!0},"--stub":{value:!0},
"--yes":{},"--no":{},"--as":{value:!0},"--failed":{}}},map:{body:"",text:!1,options:{"--over":{value:!0,names:"variable"},
"--message":{value:!0},"--schema":{value:!0,names:"variable"},"--budget":{value:!0},"--max-concurrency":{value:!0},"--ye\
s":{},"--no":{}}},record:{body:"",text:!1,options:{"--file":{value:!0}}},replay:{body:"",text:!1,options:{"--file":{value:!0}}},
serve:{body:"",text:!1,options:{"--port":{value:!0},"--share-sessions":{},"--stop":{}}},key:{body:"",text:!1,options:{"-\
-from":{value:!0,choices:["env","colab","kaggle","dotenv","keyring","ask"]},"--forget":{}}},export:{body:"",text:!1,options:{}}};var S=q,z=Object.keys(S).join("|"),me=new RegExp(`^%%(${z})(?![\\w.])`),V=new RegExp(`^([ \\t]*(?:[^\\s=%()#][^=%()#]*(=)[\
 \\t]*)?)(%%?)(${z})(?=\\s|\\?|;|$)(\\?{0,2})`),fe=3+Math.max(...Object.keys(S).map(e=>e.length)),he=/\s--kind[\s=]+["']?(?!llm\b)\w/,
ge=/^kind[ \t]*:[ \t]*["']?(?!llm\b)\w/m,G=/^---[ \t]*$/,ke=new Set(["agent","tool","variable"]);function T(e){let t=e.length-
e.trimStart().length,n=me.exec(e.slice(t,t+fe));if(n===null||t>0&&e[t-1]!==`
`)return K(e,0);let o=S[n[1]],s=x(e,t),r={type:"magic",from:t,to:s};if(o.body==="python"||o.body===""){let m=K(e,s+1)?.sections??
C(e,s+1,e.length);return{sections:[r,...m],braces:""}}let a=o.text?[]:be(e,s),i=e.slice(t,a.at(-1)?.to??s),u=t+i.length+
1,l=ye(o,i,e.slice(u)),c=l==="prose"&&!/\s--raw(?!\S)/.test(e.slice(t,s));return{sections:[r,...a,...u<e.length?[{type:l,
from:u,to:e.length}]:[]],braces:c?o.text?"variables":"all":""}}function ye(e,t,n){return e.options["--kind"]&&(he.test(t)||
ge.test(t))?"team":e.body==="table"&&!/^\s*\|/.test(n)?"yaml":e.body}function K(e,t){if(!e.includes("%",t))return null;let n=[],
o=t;for(let s=t;s<e.length;){let r=x(e,s),a=e.slice(s,r);a.includes("%")&&V.exec(a)?.[3]==="%"&&(n.push(...C(e,o,s),{type:"\
magic",from:s,to:r}),o=r+1),s=r+1}return n.length===0?null:(n.push(...C(e,o,e.length)),{sections:n,braces:""})}function C(e,t,n){
return e.slice(t,n).trim()?[{type:"python",from:t,to:n}]:[]}function be(e,t){let n=t+1+(/^\s*?(?=\S)/.exec(e.slice(t+1))?.[0].
length??0),o=x(e,n);if(!G.test(e.slice(n,o)))return[];for(let s=o+1;s<e.length;){let r=x(e,s);if(G.test(e.slice(s,r))){let a=[
{from:n,to:o},{from:s,to:r}].map(u=>({type:"fence",...u})),i=o+1<s?[{type:"yaml",from:o+1,to:s}]:[];return[a[0],...i,a[1]]}
s=r+1}return[]}function x(e,t){let n=e.indexOf(`
`,t);return n<0?e.length:n}var Y=/[^\s"']*(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+)*/y,B=/\s*[^\W\d]\w*\s*(<<)(?=\s|$)/y,
D=/^--?[^\W\d]/;function A(e){let t=V.exec(e);if(t===null)return[];let[n,o,s,r,a,i]=t,u=S[a],l=o.length,c=s?[{from:o.indexOf(
"="),to:o.indexOf("=")+1,type:"operator"}]:[];if(c.push({from:l,to:n.length-i.length,type:"magic"}),i)return[...c,{from:n.
length-i.length,to:n.length,type:"operator"}];let m={line:e,mark:r+a,magic:u,isCell:r==="%%",tokens:c};return we(m,n.length)}
function we({line:e,mark:t,magic:n,isCell:o,tokens:s},r){let a=n.text&&!o,i=n.body==="edges"||n.body==="prose"&&!n.text,
u=0;for(let l=k(e,_e(e,r,n,s));l<e.length;l=k(e,l)){let c=e.slice(l),m=ve(c,a);if(m)return[...s,{from:l,to:m.type==="com\
ment"?e.length:l+1,type:m.type}];if(/^--(?=\s|$)/.test(c)){if(s.push({from:l,to:l+2,type:"operator"}),a)return[...s,...W(
e,k(e,l+2),!1)];l+=2}else if(D.test(c))l=xe(e,l,t,n,s);else{let _=E(e,l),re=e.slice(l,_);if(a&&(u>0||!D.test(e.slice(_).
trimStart())))return[...s,...W(e,l,u===0)];s.push({from:l,to:_,type:Ee(re,i&&u===0)}),u+=1,l=_}}return s}function ve(e,t){
return/^;\s*$/.test(e)?{type:"operator"}:!t&&e[0]==="#"?{type:"comment"}:null}function _e(e,t,n,o){B.lastIndex=t;let s=n.
text?B.exec(e):null;if(s===null)return t;let r=t+s[0].length;return o.push({from:r-s[1].length,to:r,type:"operator"}),r}
function xe(e,t,n,o,s){let r=E(e,t),a=e.slice(t,r).indexOf("="),i=a<0?r:t+a,u=e.slice(t,i),l=Object.hasOwn(o.options,u)?
o.options[u]:null;if(s.push(l?{from:t,to:i,type:"option"}:{from:t,to:i,type:"wrong",problem:`${n} has no option ${u}`}),
a>=0)return s.push({from:i,to:i+1,type:"operator"}),H(e,i+1,r,l,s),r;let c=k(e,r);if(!l?.value||c===e.length||D.test(e.slice(
c)))return r;let m=E(e,c);return H(e,c,m,l,s),m}function H(e,t,n,o,s){let r=e.slice(t,n);if(t!==n)if(o?.choices&&!o.choices.
includes(r.replace(/^(["'])(.*)\1$/,"$2")))s.push({from:t,to:n,type:"wrong",problem:`${r} is not one of ${o.choices.join(
", ")}`});else if(ke.has(o?.names??"")&&/^\w+(?:,\w*)*$/.test(r))for(let{0:a,index:i}of r.matchAll(/\w+/g))s.push({from:t+
i,to:t+i+a.length,type:"value",names:o?.names});else s.push({from:t,to:n,type:/["']/.test(r)?"string":"value"})}function Ee(e,t){
return/["']/.test(e)?"string":t?"definition":"word"}function W(e,t,n){let o=E(e,t),s=n&&/^\w+$/.test(e.slice(t,o)),r=s?k(
e,o):t,a=e.trimEnd().length,i=e[a-1]===";"?a-1:a,u=s?[{from:t,to:o,type:"address",names:"agent"}]:[];return r<i&&u.push(
{from:r,to:i,type:"text"}),r<=i&&i<a&&u.push({from:i,to:a,type:"operator"}),u}function k(e,t){return e.length-e.slice(t).
trimStart().length}function E(e,t){Y.lastIndex=t;let n=t+(Y.exec(e)?.[0].length||1);return n>t+1&&/^;\s*$/.test(e.slice(
n-1))?n-1:n}var Se=/(?<comment>#.*)|-\[(?<routes>[^\]]*)\]->|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>[(),])|(?<wrong>[^\s\w(),#]+)/gu,
Te=/(?<comment>#.*)|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>,)|(?<wrong>[^\s\w,#]+)/gu,Ae=/^[ \t]*(until)[ \t]*(:)/,
$e=/(?<string>'[^']*'|"[^"]*")|(?<number>\b\d+(?:\.\d+)?\b)|(?<keyword>\b(?:and|or|not|in|is|if|else|True|False|None)\b)|(?<operator>[<>=!+\-*/%]+)/g,
Me=new Set(["START","END"]);function $(e){return J(e,Se,"node")}function M(e){let t=Ae.exec(e);if(t===null)return J(e,Te,
"agent");let[n,o]=t;return[{from:n.indexOf(o),to:n.indexOf(o)+o.length,type:"keyword"},{from:n.length-1,to:n.length,type:"\
operator"},...[...e.slice(n.length).matchAll($e)].map(s=>{let r=n.length+s.index,[a]=Object.entries(s.groups??{}).find(([
i,u])=>u);return{from:r,to:r+s[0].length,type:a}})]}function J(e,t,n){return[...e.matchAll(t)].flatMap(o=>{let{comment:s,
routes:r,arrow:a,name:i,wrong:u}=o.groups??{},[l,c]=[o.index,o.index+o[0].length];return s?[{from:l,to:c,type:"comment"}]:
a?[{from:l,to:c,type:"arrow"}]:Me.has(i)?[{from:l,to:c,type:"end"}]:i?[{from:l,to:c,type:"name",names:n}]:u?[{from:l,to:c,
type:"wrong",problem:`${u} is neither a name nor an arrow`}]:r===void 0?[{from:l,to:c,type:"separator"}]:[{from:l,to:l+2,
type:"arrow"},{from:l+2,to:c-3,type:"string"},{from:c-3,to:c,type:"arrow"}].filter(m=>m.from<m.to)})}function X(e,t){return[
...e.matchAll(/(?<!\\)\||(?:\\\||[^|\s])(?:\\\||[^|])*?(?=\s*(?:\||$))/g)].map(({0:n,index:o})=>{let s=n==="|"||t===1&&/^:?-+:?$/.
test(n);return{from:o,to:o+n.length,type:s?"separator":t===0?"heading":"cell"}})}var I="[\\p{L}_][\\p{L}\\p{N}_]*",Oe=`${I}\
(?:\\.${I}|\\[(?:-?\\d+|'[^'\\n\\]]*'|"[^"\\n\\]]*")\\])*`,Ne=new RegExp(["\\\\\\{+[^{}\\n]*\\}+","\\{{3,}[^{}]*\\}+",`\\\
{\\{(?<variable>${Oe})\\}\\}`,"\\{\\{[^{}\\n]*\\}\\}",`(?<![$\\{])\\{(?<key>(?:(?:app|user|temp):)?${I}\\??|artifact\\.[^\\\
s{}?]+\\??)\\}(?!\\})`].join("|"),"gu");function Q(e,{keys:t}){return e.includes("{")?[...e.matchAll(Ne)].flatMap(n=>{let{
variable:o,key:s}=n.groups??{},r={from:n.index,to:n.index+n[0].length};return o?[{...r,type:"variable",name:o.split(/[.[]/)[0],
needed:!0}]:!s||!t?[]:[{...r,type:"state",name:s.replace(/\?$/,""),needed:!/\?$|^artifact\./.test(s)}]}):[]}var w={magic:p.tags.operator,option:p.tags.attributeName,operator:p.tags.operator,definition:p.tags.definition(p.tags.variableName),
string:p.tags.string,comment:p.tags.comment,arrow:p.tags.punctuation,end:p.tags.standard(p.tags.variableName),keyword:p.tags.
keyword,number:p.tags.number,separator:p.tags.bracket,heading:p.tags.heading1};function R(e){return d.StreamLanguage.define(
{startState:()=>({row:0,tokens:[]}),copyState:t=>({...t}),token(t,n){t.sol()&&(n.tokens=e(t.string,n.row++));let o=n.tokens.
find(({to:s})=>s>t.pos);return o&&o.from<=t.pos?(t.pos=o.to,o.type in w?o.type:null):(o?t.pos=o.from:t.skipToEnd(),null)},
tokenTable:w})}var je={edges:R($).parser,team:R(M).parser,table:R(X).parser},U=(0,d.defineLanguageFacet)(),Le=f.NodeType.
define({id:0,name:"Document",top:!0,props:[[d.languageDataProp,U]]}),Ce=(0,p.styleTags)({fence:p.tags.bracket,...Object.
fromEntries(Object.entries(w).map(([e,t])=>[`${e}-token`,t]))}),Z=Object.fromEntries(["magic","fence","yaml","prose","ed\
ges","team","table","python",...Object.keys(w).map(e=>`${e}-token`)].map((e,t)=>[e,f.NodeType.define({id:t+1,name:e,props:[
Ce]})]));function De({type:e,from:t,to:n},o){let s=e==="magic"?A(o.slice(t,n)).filter(i=>i.type in w):[],r=s.map(i=>new f.Tree(
Z[`${i.type}-token`],[],[],i.to-i.from)),a=s.map(i=>i.from);return new f.Tree(Z[e],r,a,n-t)}var F=class extends f.Parser{constructor(t){
super(),this.wrap=t}createParse(t,n,o){let s={parsedPos:t.length,stoppedAt:null,stopAt(){},advance(){let r=t.read(0,t.length),
a=T(r)?.sections??[],i=a.map(l=>De(l,r)),u=a.map(({from:l})=>l);return new f.Tree(Le,i,u,t.length)}};return this.wrap(s,
t,n,o)}};function P(e){let t,n;return()=>t!==void 0?t:(n??=e().catch(()=>null).then(o=>{t=o}),d.ParseContext.getSkippingParser(
n))}var y=b.StateField.define({create:e=>T(e.doc.toString()),update:(e,t)=>t.docChanged?T(t.newDoc.toString()):e});function ee(e){
let t={...Object.fromEntries(Object.entries(je).map(([a,i])=>[a,()=>i])),yaml:P(()=>e("YAML")),prose:P(()=>e("Markdown")),
python:P(()=>e("ipython"))},n=(0,f.parseMixed)(a=>{let i=t[a.name]?.();return i?{parser:i}:null}),o=new F(n),s=new d.Language(
U,o,[],"adk-nb"),r=new d.Language(U,o);return[y,b.Prec.highest(d.language.computeN([y],a=>a.field(y)?[s]:[])),b.Prec.lowest(
d.language.of(r))]}var g=require("@codemirror/state"),h=require("@codemirror/view");var te=g.StateEffect.define(),Ie={magic:A,edges:$,team:M},Re={agent:e=>`this notebook has no agent ${e} yet`,node:e=>`th\
is notebook has no agent, tool or function ${e} yet`,state:e=>`the session's state has no key ${e} yet`,tool:e=>`this no\
tebook has no tool ${e} yet`,variable:e=>`this notebook has no variable ${e} yet`};function Pe(e,t){let n=e.field(y);return(n?.
sections??[]).flatMap(o=>{let s=Math.max(o.from,e.doc.lineAt(Math.min(t.from,e.doc.length)).from),r=Math.min(o.to,t.to);
if(s>=r)return[];if(o.type==="prose"&&n?.braces)return ne(e.sliceDoc(s,r),s,n.braces==="all");let a=Ie[o.type];return a?
Ue(e.sliceDoc(s,r),s).flatMap(([i,u])=>Fe(i,u,a(i))):[]})}function Ue(e,t){let n=t;return e.split(`
`).map(o=>(n+=o.length+1,[o,n-o.length-1]))}function Fe(e,t,n){let o=/\s--raw(?!\S)/.test(e);return n.flatMap(({from:s,to:r,
type:a,names:i,problem:u})=>{let l={from:t+s,to:t+r};return a==="text"?o?[]:ne(e.slice(s,r),l.from,!1):u?[{...l,type:a,problem:u}]:
i?[{...l,type:a,names:i,name:e.slice(s,r)}]:[]})}function ne(e,t,n){return Q(e,{keys:n}).map(({from:o,to:s,type:r,name:a,
needed:i})=>({from:t+o,to:t+s,type:r,...i&&{names:r,name:a}}))}function qe({type:e,names:t,name:n,problem:o},s){let r=o??
(s===!1&&e!=="address"&&Re[t??""]?.(n??"")),a=[e==="state"||e==="variable"?`adknb-mark-${e}`:"",e==="address"&&s?"adknb-\
mark-agent":"",o?"adknb-mark-wrong":r?"adknb-mark-unknown":""].filter(Boolean);return a.length===0?null:h.Decoration.mark(
{class:a.join(" "),...r&&{attributes:{title:r}}})}var Ge=h.EditorView.baseTheme({".adknb-mark-state, .adknb-mark-variabl\
e":{borderRadius:"3px",boxShadow:"0 0 0 1px color-mix(in srgb, currentColor 16%, transparent)",backgroundColor:"color-mi\
x(in srgb, currentColor 8%, transparent)"},".adknb-mark-state":{color:"var(--jp-mirror-editor-variable-3-color)"},".adkn\
b-mark-variable":{color:"var(--jp-mirror-editor-property-color)"},".adknb-mark-agent":{color:"var(--jp-mirror-editor-def\
-color)"},".adknb-mark-unknown":{textDecoration:"underline dotted var(--jp-warn-color1)",textUnderlineOffset:"3px"},".ad\
knb-mark-wrong":{textDecoration:"underline wavy var(--jp-error-color1)",textUnderlineOffset:"3px"}});function se(e){class t{constructor(s){
this.view=s,this.names=null,this.marks=[],this.decorations=h.Decoration.none,this.draw()}update(s){let r=s.transactions.
some(a=>a.effects.some(i=>i.is(te)));(s.docChanged||s.viewportChanged||r)&&this.draw()}draw(){let{state:s,visibleRanges:r}=this.
view;this.marks=r.flatMap(i=>Pe(s,i)),this.marks.some(({name:i})=>i)&&this.connect();let a=new g.RangeSetBuilder;for(let i of this.
marks){let u=qe(i,i.name?this.names?.isKnown(i.names??"",i.name):void 0);u&&a.add(i.from,i.to,u)}this.decorations=a.finish()}connect(){
this.names??=e(),this.names?.join(this)}wanted(){return this.marks.filter(({name:s})=>s).map(({names:s,name:r})=>[s,r])}refresh(){
this.view.dispatch({effects:te.of(null)})}destroy(){this.names?.leave(this)}}let n=h.ViewPlugin.fromClass(t,{decorations:o=>o.
decorations});return[Ge,g.Prec.highest(n)]}var O=class{constructor(t){this._lookUp=t,this._readers=new Set,this._known=new Map,this._isStale=!1,this._isAsking=!1,this.
_isAskedAgain=!1,this._kernel=0,this._timer=void 0}join(t){this._readers.add(t),this._missing().length>0&&this._askSoon()}leave(t){
this._readers.delete(t)}isKnown(t,n){return this._known.get(`${t} ${n}`)}expire(){this._isStale=!0,this._askSoon()}forget(){
this._kernel+=1,this._isAsking=this._isAskedAgain=!1,this._known.clear();for(let t of[...this._readers])t.refresh()}dispose(){
this._kernel+=1,clearTimeout(this._timer),this._readers.clear()}_missing(){let t=[...this._readers].flatMap(n=>n.wanted());
return this._isStale?t:t.filter(([n,o])=>!this._known.has(`${n} ${o}`))}_askSoon(){clearTimeout(this._timer),this._readers.
size>0&&(this._timer=setTimeout(()=>{this._ask()},400))}async _ask(){if(this._isAsking){this._isAskedAgain=!0;return}let t=this.
_missing().slice(0,500);if(t.length===0)return;let n={};for(let[a,i]of t)(n[a]??=[]).push(i);let[o,s]=[this._isStale,this.
_kernel];this._isAsking=!0,this._isStale=this._isAskedAgain=!1;let r=await this._lookUp(n).catch(()=>null);if(s===this._kernel){
this._isAsking=!1,o&&this._known.clear();for(let[a,i]of t)this._known.set(`${a} ${i}`,r?.[a]?.includes(i));for(let a of[
...this._readers])a.refresh();this._isAskedAgain&&this._askSoon()}}};var Ke=3,v=new WeakMap,Ye='__import__("sys").modules["adk_nb.notebook.magics.extension"].known_names',Be="adk_nb.names";
async function He(e,t){if(!e||(await e.info).language_info.name!=="python")return null;let n={code:"",silent:!0,store_history:!1,
allow_stdin:!1,stop_on_error:!1},o={names:`${Ye}(${JSON.stringify(t)})`};for(let s=0;s<Ke;s++){let{content:r}=await e.requestExecute(
{...n,user_expressions:o}).done;if(r.status==="ok")return r.user_expressions?r.user_expressions.names?.data?.["applicati\
on/json"]??null:We(e,t);if(r.status!=="aborted")return null}return null}function We(e,t){return new Promise(n=>{let o=e.
createComm(Be);o.onClose=()=>n(null),o.onMsg=({content:s})=>{n(s.data),o.close()},o.open(t)})}function oe({context:e,sessionContext:t}){
let n=e.model.sharedModel;if(v.has(n))return;let o=new O(s=>He(t.session?.kernel,s));v.set(n,o),t.kernelChanged.connect(
()=>o.forget()),t.statusChanged.connect((s,r)=>{(r==="restarting"||r==="autorestarting")&&o.forget()}),e.disposed.connect(
()=>{o.dispose(),v.delete(n)})}var ze={id:"adk-nb:cells",description:"Highlights the cells of adk_nb.",autoStart:!0,requires:[
N.IEditorExtensionRegistry,N.IEditorLanguageRegistry],optional:[j.INotebookTracker],activate(e,t,n,o){let s=ee(async r=>(await n.
getLanguage(r))?.support?.language.parser??null);t.addExtension({name:"adk-nb:cells",factory:({model:r})=>{if(r.type!=="\
code")return null;let a=[s,se(()=>v.get(r.sharedModel.notebook??r)??null)];return{instance:()=>a,reconfigure:()=>null}}}),
o?.forEach(oe),o?.widgetAdded.connect((r,a)=>oe(a)),j.NotebookActions.executed.connect((r,{notebook:a})=>{a.model&&v.get(
a.model.sharedModel)?.expire()})}};
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
