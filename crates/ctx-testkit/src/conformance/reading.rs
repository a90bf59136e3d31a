//! Reads memory usage from the operating system.

/// Returns the resident memory of this process and its descendants, in bytes. `None` if unknown.
#[cfg(target_os = "linux")]
pub(super) fn resident() -> Option<i64> {
    use std::collections::HashMap;

    let mut resident: u64 = 0;
    let mut processes: HashMap<u32, (u32, u64)> = HashMap::new();
    for folder in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = folder.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended since it was listed.
        let Ok(status) = std::fs::read_to_string(folder.path().join("status")) else { continue };
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let parent = field("PPid:").and_then(|parent| u32::try_from(parent).ok());
        let kilobytes = field("VmRSS:").unwrap_or(0);
        processes.insert(id, (parent.unwrap_or(0), kilobytes.saturating_mul(1024)));
    }
    let own = std::process::id();
    for &of in processes.keys() {
        // A pid may be reused while this runs: bound the length of the chain.
        let mut id = of;
        for _ in 0..processes.len() {
            if id == own {
                resident += processes.get(&of).map_or(0, |(_, bytes)| *bytes);
                break;
            }
            match processes.get(&id) {
                Some((parent, _)) => id = *parent,
                None => break,
            }
        }
    }
    i64::try_from(resident).ok().filter(|&bytes| bytes > 0)
}

/// Returns the resident memory of this process and its descendants, in bytes. `None` if unknown.
#[cfg(not(target_os = "linux"))]
pub(super) fn resident() -> Option<i64> {
    None
}
