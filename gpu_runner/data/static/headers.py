"""Macros of the toolchain's headers by which a source can spell a word without writing it."""

from __future__ import annotations

MACROS = r"""
#define __CONCAT(x, y) x ## y
#define __STRING(x) #x
#define __ASMNAME(cname) cname
#define __ASMNAME2(prefix, cname) cname
#define __REDIRECT(name, proto, alias) name proto __asm__ (#alias)
#define __REDIRECT_NTH(name, proto, alias) name proto __asm__ (#alias)
#define __REDIRECT_NTHNL(name, proto, alias) name proto __asm__ (#alias)
#define __REDIRECT_LDBL(name, proto, alias) name proto __asm__ (#alias)
#define __REDIRECT_NTH_LDBL(name, proto, alias) name proto __asm__ (#alias)
#define __LDBL_REDIR1_DECL(name, alias) extern int name __asm (#alias);
#define __LDBL_REDIR2_DECL(name) extern int name __asm ("__" #name "ieee128");
#define __LDBL_REDIR_DECL(name) extern int name __asm ("__" #name "ieee128");
#define __glibc_macro_warning1(message) _Pragma (#message)
#define __glibc_macro_warning(message) _Pragma (#message)
#define __attr_access(x) __attribute__ ((__access__ x))
#define __attr_access_none(argno) __attribute__ ((__access__ (__none__, argno)))
#define __fortified_attr_access(a, o, s) __attribute__ ((__access__ (a, o)))
#define __attr_dealloc(dealloc, argno) __attribute__ ((__malloc__ (dealloc, argno)))
#define __attribute_alloc_align__(param) __attribute__ ((__alloc_align__ param))
#define __attribute_alloc_size__(params) __attribute__ ((__alloc_size__ params))
#define __attribute_copy__(arg) __attribute__ ((__copy__ (arg)))
#define __attribute_format_arg__(x) __attribute__ ((__format_arg__ (x)))
#define __attribute_nonnull__(params) __attribute__ ((__nonnull__ params))
#define _Attr_access_(x) __attribute__ ((__access__ x))
#define __MATH_PRECNAME(name, r) name##f##r
#define __MATHDECLX(type, function, suffix, args, attrib) type function args __attribute__ (attrib);
#define _ElfW_1(e, w, t) e##w##t
#define __gthrw2(name, name2, type) name __attribute__ ((__weakref__(#name2)));
#define __qmath2(name, name2, type) name __attribute__ ((__weakref__(#name2)));
#define _GLIBCXX_VISIBILITY(V) __attribute__ ((__visibility__ (#V)))
#define _PSTL_STRING_AUX(x) #x
#define _PSTL_STRING(x) _PSTL_STRING_AUX(x)
#define _PSTL_STRING_CONCAT(x, y) x #y
#define _PSTL_PRAGMA(x) _Pragma (#x)
#define _LIBCUDACXX_PIPELINE_CONCAT(X, Y) X ## Y
#define _LIBCUDACXX_CONCAT1(X, Y) X ## Y
#define _LIBCUDACXX_CONCAT(X, Y) _LIBCUDACXX_CONCAT1(X, Y)
#define _CONCAT_INNER(x, y) x ## y
#define _CONCAT_OUTER(x, y) _CONCAT_INNER(x, y)
#define NVTX3_CONCAT(A, B) A##B
#define _NV_CONCAT_EVAL1(l, r) l##r
#define _NV_CONCAT_EVAL(l, r) _NV_CONCAT_EVAL1(l, r)
#define _NV_PASTE5(a, b, c, d, e) a##b##c##d##e
#define _CG_CONCAT_INNER(x, y) x ## y
#define _CG_CONCAT_OUTER(x, y) _CG_CONCAT_INNER(x, y)
#define _CCCL_PP_CAT_(X, ...) X##__VA_ARGS__
#define _CCCL_PP_CAT(X, ...) _CCCL_PP_CAT_(X, __VA_ARGS__)
#define _CCCL_PP_CAT2_(X, ...) X##__VA_ARGS__
#define _CCCL_PP_CAT2(X, ...) _CCCL_PP_CAT2_(X, __VA_ARGS__)
#define _CCCL_PP_CAT3_(X, ...) X##__VA_ARGS__
#define _CCCL_PP_CAT3(X, ...) _CCCL_PP_CAT3_(X, __VA_ARGS__)
#define _CCCL_PP_CAT4_(X, ...) X##__VA_ARGS__
#define _CCCL_PP_CAT4(X, ...) _CCCL_PP_CAT4_(X, __VA_ARGS__)
#define _CCCL_PP_SPLICE_WITH(SEP, P1, ...) P1##SEP##__VA_ARGS__
#define _CCCL_PP_SPLICE_WITH_IMPL2(SEP, P1, P2) P1##SEP##P2
#define _CCCL_PP_SPLICE_WITH_IMPL3(SEP, P1, P2, P3) P1##SEP##P2##SEP##P3
#define _CCCL_TO_STRING2(STR) #STR
#define _CCCL_TO_STRING(STR) _CCCL_TO_STRING2(STR)
#define _CCCL_PRAGMA(ARG) _Pragma (_CCCL_TO_STRING(ARG))
#define THRUST_PP_CAT2_IMPL0(a, b) a##b
#define THRUST_PP_CAT2(a, b) THRUST_PP_CAT2_IMPL0(a, b)
#define THRUST_PP_STRINGIZE_IMPL0(expr) #expr
#define THRUST_PP_STRINGIZE(expr) THRUST_PP_STRINGIZE_IMPL0(expr)
#define ___CUDA_BF16_STRINGIFY_INNERMOST(x) #x
#define __CUDA_BF16_STRINGIFY(x) ___CUDA_BF16_STRINGIFY_INNERMOST(x)
#define ___CUDA_FP16_STRINGIFY_INNERMOST(x) #x
#define __CUDA_FP16_STRINGIFY(x) ___CUDA_FP16_STRINGIFY_INNERMOST(x)
#define __ASSERT_STR_HELPER(x) #x
#define __TO_STRING_CORE(X) #X
#define __TO_STRING(X) __TO_STRING_CORE(X)
#define __device_fun(fun) #fun
#define __device_var(var) #var
#define __annotate__(a) __attribute__ ((a))
#define Py_GCC_ATTRIBUTE(x) __attribute__ (x)
#define _Py_XSTRINGIFY(x) #x
#define Py_STRINGIFY(x) _Py_XSTRINGIFY(x)
#define ITT_JOIN_AUX(p, n) p##n
#define ITT_JOIN(p, n) ITT_JOIN_AUX(p, n)
#define C10_CONCATENATE_IMPL(s1, s2) s1##s2
#define C10_CONCATENATE(s1, s2) C10_CONCATENATE_IMPL(s1, s2)
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define _C10_PRAGMA__(string) _Pragma (#string)
#define AT_CONCAT_AUX(a, b) a##b
#define AT_CONCAT(a, b) AT_CONCAT_AUX(a, b)
#define PYBIND11_CONCAT(first, second) first##second
#define PYBIND11_STRINGIFY(x) #x
#define PYBIND11_TOSTRING(x) PYBIND11_STRINGIFY(x)
#define PYBIND11_PRAGMA(...) _Pragma (#__VA_ARGS__)
#define FMT_PRAGMA_IMPL(x) _Pragma (#x)
#define TH_CONCAT_2_EXPAND(x, y) x##y
#define TH_CONCAT_2(x, y) TH_CONCAT_2_EXPAND(x, y)
#define TH_CONCAT_3_EXPAND(x, y, z) x##y##z
#define TH_CONCAT_3(x, y, z) TH_CONCAT_3_EXPAND(x, y, z)
#define TH_CONCAT_4_EXPAND(x, y, z, w) x##y##z##w
#define TH_CONCAT_4(x, y, z, w) TH_CONCAT_4_EXPAND(x, y, z, w)
#define TH_CONCAT_STRING_2_EXPAND(x, y) #x #y
#define TH_CONCAT_STRING_2(x, y) TH_CONCAT_STRING_2_EXPAND(x, y)
#define TH_CONCAT_STRING_3_EXPAND(x, y, z) #x #y #z
#define TH_CONCAT_STRING_3(x, y, z) TH_CONCAT_STRING_3_EXPAND(x, y, z)
#define NO_SANITIZE(what) __attribute__ ((no_sanitize (what)))
"""
"""What joins words, makes text of them, or puts text into assembly, attributes and pragmas, as
glibc 2.36 and libstdc++ 12, CUDA 13.0 and torch 2 define it; what else they do is left out."""
