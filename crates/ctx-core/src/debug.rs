//! `Debug` of types that cannot, or should not, show all of their fields.

/// Implements `Debug` for a type, with these fields only. `$this` names the value.
///
/// ```
/// struct Connection {
///     url: String,
///     token: String,
/// }
/// ctx_core::partial_debug!(Connection, it, url = it.url, has_token = !it.token.is_empty());
///
/// let connection = Connection { url: "x".into(), token: "secret".into() };
/// assert_eq!(format!("{connection:?}"), r#"Connection { url: "x", has_token: true, .. }"#);
/// ```
#[macro_export]
macro_rules! partial_debug {
    ($type:ident, $this:ident $(, $field:ident = $value:expr)*) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                let _ = $this;
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
