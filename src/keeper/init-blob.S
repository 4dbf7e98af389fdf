/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-init, carried inside the keeper, from where it is sealed. */
	.section .rodata
	.global cordon_init_start
	.global cordon_init_end
	.balign 16
cordon_init_start:
	.incbin INIT_BLOB
cordon_init_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
