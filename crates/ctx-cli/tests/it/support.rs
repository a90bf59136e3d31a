//! Runs the binary, and creates transcripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

/// A folder's files: bytes, and the time of the last write.
pub(crate) type Files = BTreeMap<PathBuf, (Vec<u8>, SystemTime)>;

/// A temporary folder for one test, which is also its `$CTX_HOME`.
pub(crate) struct Room {
    folder: TempDir,
}

/// The result of a run of the binary.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output: Output = command.output().expect("the binary runs");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder can be made") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    /// Writes a program for the shell, without its first line, into `bin`.
    #[cfg(unix)]
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("it is ours");
        path
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folder");
        std::fs::write(&path, bytes).expect("the temporary folder can be written");
        path
    }

    /// Returns the binary with these arguments, with this folder as its home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctx"));
        command.args(args).env("CTX_HOME", self.folder.path()).env("NO_COLOR", "1");
        // Sessions of other agents come from this folder, never from the user who runs the tests.
        command.env("HOME", self.folder.path());
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "PI_CODING_AGENT_DIR",
            "PI_CODING_AGENT_SESSION_DIR",
            "OPENCLAW_HOME",
            "OPENCLAW_STATE_DIR",
            "GEMINI_CLI_HOME",
            "XDG_DATA_HOME",
            "RUST_LOG",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn ctx(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Returns every file of the folder. Locks are ignored: they remain as empty files. So are
    /// files that another process removes meanwhile.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(listed) = std::fs::read_dir(folder) else { continue };
            for item in listed {
                let path = item.expect("an entry").path();
                let Ok(metadata) = path.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(path);
                } else if path.extension().is_none_or(|e| e != "lock") || metadata.len() > 0 {
                    let written = metadata.modified().expect("a time");
                    let Ok(bytes) = std::fs::read(&path) else { continue };
                    files.insert(path, (bytes, written));
                }
            }
        }
        files
    }

    /// Runs with `--json`, expects success, and parses the answer.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let ran = self.ctx(&args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.stdout))
    }

    /// Runs and expects a clear error: exit code 1, nothing on stdout, and these words on stderr.
    pub(crate) fn refused(&self, args: &[&str], words: &str) {
        self.ends(1, args, words);
    }

    /// As [`Room::refused`], for invalid arguments: exit code 2.
    pub(crate) fn misused(&self, args: &[&str], words: &str) {
        self.ends(2, args, words);
    }

    fn ends(&self, code: i32, args: &[&str], words: &str) {
        let ran = self.ctx(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
        assert!(ran.stderr.starts_with("error: "), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {:?} not in {}", words, ran.stderr);
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

/// Returns the lines of a pi v3 session of `turns` turns: a question, a call, its result and an answer.
pub(crate) fn pi_lines(turns: usize) -> Vec<String> {
    let mut lines = vec![
        r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-05T08:00:00.000Z","cwd":"/w"}"#
            .to_owned(),
    ];
    let mut parent = "null".to_owned();
    let mut add = |n: usize, message: String| {
        let id = format!("{n:08x}");
        let time = format!("2026-01-05T08:{:02}:{:02}.000Z", n / 60 % 60, n % 60);
        lines.push(format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
        ));
        parent = format!("\"{id}\"");
    };
    for turn in 0..turns {
        let n = turn * 4;
        add(
            n,
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"question {turn}"}}]}}"#),
        );
        add(
            n + 1,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"call_{turn}","name":"read","arguments":{{"path":"src/{turn}.rs"}}}}],"stopReason":"toolUse"}}"#
            ),
        );
        let result = "line of output\\n".repeat(200);
        add(
            n + 2,
            format!(
                r#"{{"role":"toolResult","toolCallId":"call_{turn}","toolName":"read","content":[{{"type":"text","text":"{result}"}}],"isError":false}}"#
            ),
        );
        add(
            n + 3,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {turn}"}}],"stopReason":"stop"}}"#
            ),
        );
    }
    lines
}

pub(crate) fn join(lines: &[String]) -> String {
    lines.iter().flat_map(|l| [l.as_str(), "\n"]).collect()
}

pub(crate) use ctx_testkit::recorded as data;
