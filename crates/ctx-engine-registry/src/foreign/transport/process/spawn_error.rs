//! Why the system cannot start a program.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind};

use super::Program;

/// The system, too, truncates longer first lines of scripts.
const FIRST_LINE: u64 = 4_096;

/// Returns the error of a program that could not be started. The system reports a script whose
/// interpreter is missing in the same way as a missing script.
pub(super) fn why(program: &Program, error: io::Error) -> Error {
    let path = &program.command;
    let refused = Error::new(ErrorKind::Io, "the engine's program cannot be run");
    let (refused, hint) = match missing(program, &error) {
        Some(Missing::Folder(folder)) => {
            let hint = "it runs in that folder, which must exist".to_owned();
            (refused.with("missing", folder.display()), hint)
        }
        Some(Missing::Interpreter(interpreter)) => {
            // Escaped, to show control characters: the line may have a Windows line end.
            let name = interpreter.to_string_lossy().escape_debug().to_string();
            let hint = format!("its first line requires {name}: install it, or change the line");
            (refused.with("missing", name), hint)
        }
        None => {
            let hint = "it must exist and be executable; a script must begin with #!".to_owned();
            (refused, hint)
        }
    };
    refused.with("program", path.display()).with("reason", &error).source(error).hint(hint)
}

enum Missing {
    Folder(PathBuf),
    Interpreter(PathBuf),
}

fn missing(program: &Program, error: &io::Error) -> Option<Missing> {
    if error.kind() != io::ErrorKind::NotFound {
        return None;
    }
    if let Some(folder) = program.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Some(Missing::Folder(folder.clone()));
    }
    let interpreter = interpreter(&program.command).ok().flatten()?;
    (!interpreter.exists()).then_some(Missing::Interpreter(interpreter))
}

/// Returns the interpreter named in the first line of a script.
fn interpreter(script: &Path) -> io::Result<Option<PathBuf>> {
    if !script.metadata()?.is_file() {
        return Ok(None);
    }
    let mut line = Vec::new();
    BufReader::new(ctx_disk::open(script)?.take(FIRST_LINE)).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let named = line.strip_prefix("#!").map(|line| line.trim_matches([' ', '\t', '\n']));
    Ok(named.and_then(|named| named.split([' ', '\t']).next()).map(PathBuf::from))
}
