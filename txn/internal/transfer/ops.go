package transfer

// Operations of the reflog that carry versions from another database.
const (
	OpClone = "clone"
	OpPush  = "push"
	OpPull  = "pull"
	// What else a transfer may be; it is in no reflog.
	OpFetch  = "fetch"
	OpBackup = "backup"
)
