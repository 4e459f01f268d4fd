//! The test attribute of windlass-cluster.

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input};

/// Makes an async function that takes a `TestCluster` a test with a cluster of its own, under virtual time.
///
/// ```text
/// #[windlass_cluster::test]
/// async fn follows_the_size(cluster: TestCluster) { … }
/// ```
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    if function.sig.asyncness.is_none() || function.sig.inputs.len() != 1 {
        let message = "a windlass_cluster::test is an async fn with one parameter, the TestCluster";
        return syn::Error::new_spanned(&function.sig, message)
            .to_compile_error()
            .into();
    }
    let (attributes, name, parameter, body) = (
        &function.attrs,
        &function.sig.ident,
        &function.sig.inputs[0],
        &function.block,
    );
    quote! {
        #(#attributes)*
        #[test]
        fn #name() {
            ::windlass_cluster::private::run(|#parameter| async move #body);
        }
    }
    .into()
}
