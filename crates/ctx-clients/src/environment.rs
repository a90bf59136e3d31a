//! What the configuration of a client depends on outside of its files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the root of the repository with a folder.
pub(crate) fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The folders, variables and arguments that say where clients and their configuration are.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The user's home folder.
    pub home: PathBuf,
    /// The working folder.
    pub folder: PathBuf,
    /// Environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// The arguments of a client that is started.
    pub args: Vec<OsString>,
}

impl Environment {
    /// Returns the environment of this process.
    #[must_use]
    pub fn from_process() -> Self {
        Self {
            home: std::env::home_dir().unwrap_or_default(),
            folder: std::env::current_dir().unwrap_or_default(),
            variables: std::env::vars_os().collect(),
            args: Vec::new(),
        }
    }

    /// Returns the value of a variable, if it is set and not empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(&OsString::from(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the folder that a variable names, else `default` in the home folder.
    pub(crate) fn folder_of(&self, variable: &str, default: impl AsRef<Path>) -> PathBuf {
        let named = self.variable(variable).map(|named| match named.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.folder.join(named),
        });
        named.unwrap_or_else(|| self.home.join(default))
    }

    /// Returns the values of an argument by its names: `--name value`, or `--name=value`.
    pub(crate) fn flags(&self, names: &'static [&str]) -> impl Iterator<Item = &str> {
        let args = self.args.iter().map(|arg| arg.to_str().unwrap_or_default());
        let mut args = args.take_while(|arg| *arg != "--");
        std::iter::from_fn(move || {
            loop {
                let arg = args.next()?;
                let (name, value) =
                    arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
                if names.contains(&name) {
                    return value.or_else(|| args.next());
                }
            }
        })
    }

    /// Returns the path of a program: of a command on the search path, or of a file.
    #[must_use]
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let path = self.variables.get(&OsString::from("PATH"));
        which::which_in(program, path, &self.folder).ok()
    }

    /// Returns the command that starts this program: its name, if that finds it, else its path.
    ///
    /// # Errors
    ///
    /// `Io` if the system does not know the path.
    pub fn own_program(&self) -> std::io::Result<String> {
        let own = std::env::current_exe()?;
        let name = own.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let named = self.find(name).and_then(|path| path.canonicalize().ok());
        match named == own.canonicalize().ok() {
            true => Ok(name.to_owned()),
            false => Ok(own.display().to_string()),
        }
    }
}
