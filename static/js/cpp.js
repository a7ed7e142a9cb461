// C++ and CUDA as CodeMirror reads them line by line: words in classes, and the depth of braces.

const words = (text) => new Set(text.split(" "));
const KEYWORDS = words("alignas alignof asm auto break case catch class concept const consteval constexpr constinit continue decltype default delete do dynamic_cast else enum explicit export extern for friend goto if inline mutable namespace new noexcept operator private protected public register reinterpret_cast requires return sizeof static static_assert static_cast const_cast struct switch template this thread_local throw try typedef typeid typename union using virtual volatile while __global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __restrict __launch_bounds__ __forceinline__ __noinline__ __grid_constant__ __cluster_dims__");
const TYPES = words("void bool char short int long float double signed unsigned wchar_t char8_t char16_t char32_t size_t ptrdiff_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 __nv_fp8_e4m3 __nv_fp8_e5m2 float2 float3 float4 double2 int2 int3 int4 uint2 uint3 uint4 dim3 cudaStream_t cudaError_t __m128 __m256 __m256d __m256i __m512 __m512d __m512i");
const BUILT_IN = words("threadIdx blockIdx blockDim gridDim warpSize __syncthreads __syncwarp __shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync __ballot_sync __ldg __expf __fdividef atomicAdd atomicMax std");
const ATOMS = words("true false nullptr NULL");

function afterBlock(stream, state, end) {
  if (stream.skipTo(end)) {
    stream.match(end);
    state.until = "";
  } else {
    stream.skipToEnd();
  }
}

function quoted(stream, quote) {
  let escaped = false;
  for (let next = stream.next(); next; next = stream.next()) {
    if (next === quote && !escaped) return;
    escaped = next === "\\" && !escaped;
  }
}

function word(stream) {
  const name = stream.current();
  if (KEYWORDS.has(name)) return "keyword";
  if (TYPES.has(name)) return "typeName";
  if (ATOMS.has(name)) return "atom";
  if (BUILT_IN.has(name)) return "variableName.standard";
  return stream.match(/^\s*\(/, false) ? "variableName.function" : "variableName";
}

function token(stream, state) {
  if (state.until) {
    const kind = state.kind;
    afterBlock(stream, state, state.until);
    return kind;
  }
  if (stream.sol() && stream.match(/^\s*#\s*\w+/)) return "meta";
  if (stream.eatSpace()) return null;
  if (stream.match("//")) {
    stream.skipToEnd();
    return "comment";
  }
  const raw = stream.match(/^(?:u8|[uUL])?R"([^\s()\\]{0,16})\(/);
  if (raw || stream.match("/*")) {
    state.kind = raw ? "string" : "comment";
    state.until = raw ? `)${raw[1]}"` : "*/";
    afterBlock(stream, state, state.until);
    return state.kind;
  }
  if (stream.match(/^(?:0[xX][\da-fA-F'.]+(?:[pP][+-]?\d+)?|0[bB][01']+|(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[\w]*/)) return "number";
  const next = stream.next();
  if (next === '"' || next === "'") {
    quoted(stream, next);
    return "string";
  }
  if (/[A-Za-z_]/.test(next)) {
    stream.eatWhile(/\w/);
    return word(stream);
  }
  if (next === "{") state.depth += 1;
  if (next === "}") state.depth = Math.max(state.depth - 1, 0);
  return /[[\]{}(),;]/.test(next) ? "punctuation" : "operator";
}

export const language = {
  name: "cpp",
  startState: () => ({ until: "", kind: "", depth: 0 }),
  token,
  indent: (state, after, context) => (state.until ? null : (state.depth - (/^\s*\}/.test(after) ? 1 : 0)) * context.unit),
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } }, indentOnInput: /^\s*\}$/ },
};
