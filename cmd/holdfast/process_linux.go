package main

import "syscall"

// endWithParent ends the program when holdfast is killed: nobody renews the lock then.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }
