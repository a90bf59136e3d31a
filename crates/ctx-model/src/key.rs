//! API keys: their sources, and their protection from being printed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};

/// The maximum size of a key file in bytes. A key is one line, so a larger file is not a key file.
const LARGEST_FILE: u64 = 64 * 1024;

/// The minimum length of a secret that is redacted in texts: redacting a shorter one would reveal
/// more than it hides.
const SHORTEST_HIDDEN: usize = 6;

/// The replacement for a secret in a text.
const HIDDEN: &str = "[redacted]";

/// A secret text. Its `Debug` and `Display` show neither the text nor its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a secret.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }

    /// Returns the text itself, for a request header.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Redacts the secret in `text`, because a provider's error may repeat the key it refuses.
    pub(crate) fn hide_in(&self, text: String) -> String {
        if self.0.len() < SHORTEST_HIDDEN || !text.contains(&*self.0) {
            return text;
        }
        text.replace(&*self.0, HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The source of a key or of a header value.
///
/// # Example
///
/// ```
/// use ctx_model::KeyRef;
///
/// assert_eq!(KeyRef::parse("$OPENAI_API_KEY")?.to_string(), "$OPENAI_API_KEY");
/// assert_eq!(KeyRef::parse("file:/run/secrets/key")?.to_string(), "file:/run/secrets/key");
/// assert_eq!(KeyRef::parse("sk-very-secret")?.to_string(), "a key in the configuration");
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyRef {
    /// An environment variable.
    Env(String),
    /// The first line of a file, read for each request.
    File(PathBuf),
    /// The value itself.
    Literal(Secret),
}

impl KeyRef {
    /// Parses a reference: `env:NAME`, `$NAME` or `${NAME}`; `file:PATH`, where `~/` is the home
    /// folder; anything else is the value itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is empty or lacks the name of the variable or file.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = |what: &'static str| {
            Error::new(ErrorKind::InvalidInput, what).hint(
                "write a key as \"$NAME\" (environment variable), \"file:PATH\" or the key itself",
            )
        };
        if text.is_empty() {
            return Err(wrong("empty API key"));
        }
        let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let variable = text.strip_prefix("env:").or(braced).or_else(|| text.strip_prefix('$'));
        if let Some(name) = variable {
            // This may be a key that starts with a dollar sign, so the error omits it.
            return if is_variable(name) {
                Ok(Self::Env(name.to_owned()))
            } else {
                Err(wrong("missing name of the environment variable of an API key"))
            };
        }
        match text.strip_prefix("file:") {
            Some("") => Err(wrong("missing path of an API key file")),
            Some(path) => Ok(Self::File(PathBuf::from(path))),
            None => Ok(Self::Literal(Secret::new(text))),
        }
    }

    /// Returns the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Capability`] if it is missing; the hint names the variable or the file.
    pub fn resolve(&self) -> Result<Secret> {
        self.resolve_with(|name| std::env::var(name).ok())
    }

    /// Like [`resolve`](Self::resolve), with a custom environment.
    ///
    /// # Errors
    ///
    /// See [`resolve`](Self::resolve).
    fn resolve_with(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Secret> {
        let key = match self {
            Self::Env(name) => environment(name).ok_or_else(|| self.missing())?,
            Self::File(path) => self.read(path)?,
            Self::Literal(secret) => return Ok(secret.clone()),
        };
        match key.trim() {
            "" => Err(self.missing()),
            key => Ok(Secret::new(key)),
        }
    }

    fn missing(&self) -> Error {
        let error = Error::new(ErrorKind::Capability, "missing API key").with("key", self);
        match self {
            Self::Env(name) => error.hint(format!(
                "set the environment variable {name}, or apiKey of the provider in ctx.json5"
            )),
            Self::File(path) => error.hint(format!("put the key into {}", path.display())),
            Self::Literal(_) => error,
        }
    }

    fn read(&self, path: &Path) -> Result<String> {
        let at_home = path.strip_prefix("~").ok().zip(std::env::home_dir());
        let path = at_home.map_or_else(|| path.to_owned(), |(rest, home)| home.join(rest));
        // Opening a pipe would block, and a folder cannot be read.
        let size =
            std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
        match size {
            None => Err(self.missing()),
            Some(size) if size > LARGEST_FILE => {
                Err(Error::new(ErrorKind::InvalidInput, "the key file is too large")
                    .with("path", path.display())
                    .with("bytes", size)
                    .hint("use a file whose first line is the key"))
            }
            Some(_) => {
                let text = ctx_disk::read_to_string(&path).map_err(|e| {
                    Error::new(ErrorKind::Io, "cannot read the key file")
                        .with("path", path.display())
                        .hint("check that you may read it and that it is text")
                        .source(e)
                })?;
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Shows the source of the key, never the key.
impl fmt::Display for KeyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "${name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Literal(_) => f.write_str("a key in the configuration"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-not-to-be-seen-4711";

    #[test]
    fn references_are_read_as_people_write_them() {
        let env = |name: &str| KeyRef::Env(name.to_owned());
        for (text, expected) in [
            ("env:OPENAI_API_KEY", env("OPENAI_API_KEY")),
            ("$OPENAI_API_KEY", env("OPENAI_API_KEY")),
            (" ${MY_KEY} ", env("MY_KEY")),
            ("file:/run/key", KeyRef::File("/run/key".into())),
            (SECRET, KeyRef::Literal(Secret::new(SECRET))),
        ] {
            assert_eq!(KeyRef::parse(text).unwrap(), expected, "{text}");
        }
        for text in
            ["", "  ", "$", "env:", "${", "$sk-secret-text", "$9", "file:", "${A", "env:A B"]
        {
            let error = KeyRef::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
            assert!(!format!("{error:?}").contains("secret-text"));
        }
    }

    #[test]
    fn a_missing_key_says_which_variable_to_set() {
        let none = KeyRef::parse("$CTX_TEST_KEY").unwrap();
        for value in [None, Some(String::new()), Some(" \n".to_owned())] {
            let error = none.resolve_with(|_| value.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Capability);
            assert!(error.hint_text().unwrap().contains("CTX_TEST_KEY"), "{error:?}");
        }
        let found = none.resolve_with(|name| Some(format!("{name}-value\n"))).unwrap();
        assert_eq!(found.expose(), "CTX_TEST_KEY-value");
    }

    #[test]
    fn a_key_file_is_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = KeyRef::File(path.clone());
        assert_eq!(key.resolve().unwrap_err().kind(), ErrorKind::Capability);
        std::fs::write(&path, format!("{SECRET}\r\nsecond line\n")).unwrap();
        assert_eq!(key.resolve().unwrap().expose(), SECRET);
        std::fs::write(&path, "x".repeat(LARGEST_FILE as usize + 1)).unwrap();
        assert_eq!(key.resolve().unwrap_err().kind(), ErrorKind::InvalidInput);
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(key.resolve().unwrap_err().kind(), ErrorKind::Io);
        let folder = KeyRef::File(folder.path().to_owned());
        assert_eq!(folder.resolve().unwrap_err().kind(), ErrorKind::Capability);
    }

    #[test]
    fn no_format_shows_a_secret() {
        let key = KeyRef::parse(SECRET).unwrap();
        let secret = key.resolve().unwrap();
        let all = [
            format!("{key} {key:?} {key:#?} {secret} {secret:?} {secret:#?}"),
            format!("{:?}", key.resolve()),
            secret.hide_in(format!("Incorrect API key provided: {SECRET}. Really: {SECRET}")),
        ];
        for text in all {
            assert!(!text.contains(SECRET) && !text.contains("4711"), "{text}");
        }
        assert_eq!(Secret::new("a").hide_in("banana".to_owned()), "banana");
    }
}
