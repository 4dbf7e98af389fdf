/* SPDX-License-Identifier: Apache-2.0 */
#include "box/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

#define MAX_HEADERS 64
#define MAX_DYNAMIC 4096

struct image {
	const unsigned char *data;
	size_t size;
	Elf64_Phdr headers[MAX_HEADERS];
	size_t n_headers;
};

static bool is_inside(const struct image *f, uint64_t off, uint64_t len)
{
	return off <= f->size && len <= f->size - off;
}

/* The string at `off`, "" where there is none that ends in the file. */
static const char *string_at(const struct image *f, uint64_t off)
{
	if (off >= f->size || !memchr(f->data + off, '\0', f->size - off))
		return "";
	return (const char *)f->data + off;
}

static int read_headers(struct image *f)
{
	Elf64_Ehdr e;

	if (f->size < sizeof(e))
		return -ENOEXEC;
	memcpy(&e, f->data, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != MACHINE ||
	    (e.e_type != ET_EXEC && e.e_type != ET_DYN) ||
	    e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phnum > MAX_HEADERS ||
	    !is_inside(f, e.e_phoff, e.e_phnum * sizeof(Elf64_Phdr)))
		return -ENOEXEC;
	f->n_headers = e.e_phnum;
	memcpy(f->headers, f->data + e.e_phoff,
	       f->n_headers * sizeof(Elf64_Phdr));
	return 0;
}

static const Elf64_Phdr *find_header(const struct image *f, uint32_t type)
{
	for (size_t i = 0; i < f->n_headers; i++)
		if (f->headers[i].p_type == type)
			return &f->headers[i];
	return NULL;
}

/* Where in the file the address is that a dynamic entry holds. */
static uint64_t file_offset(const struct image *f, uint64_t address)
{
	for (size_t i = 0; i < f->n_headers; i++) {
		const Elf64_Phdr *h = &f->headers[i];

		if (h->p_type == PT_LOAD && address >= h->p_vaddr &&
		    address - h->p_vaddr < h->p_filesz)
			return h->p_offset + (address - h->p_vaddr);
	}
	return UINT64_MAX;
}

static int copy(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return -ENOEXEC;
	memcpy(to, text, len + 1);
	return 0;
}

static int read_entry(const struct image *f, const Elf64_Dyn *d,
		      uint64_t strings, struct elf_needs *ret)
{
	if (d->d_tag != DT_NEEDED && d->d_tag != DT_RUNPATH &&
	    d->d_tag != DT_RPATH)
		return 0;
	if (strings >= f->size || d->d_un.d_val >= f->size)
		return -ENOEXEC;
	if (d->d_tag == DT_NEEDED)
		return strv_add(&ret->libraries,
				string_at(f, strings + d->d_un.d_val)) < 0
			       ? -ENOMEM
			       : 0;
	return copy(ret->runpath, sizeof(ret->runpath),
		    string_at(f, strings + d->d_un.d_val));
}

static int read_dynamic(const struct image *f, struct elf_needs *ret)
{
	const Elf64_Phdr *h = find_header(f, PT_DYNAMIC);
	uint64_t strings = UINT64_MAX;
	Elf64_Dyn d;
	size_t n;

	if (!h)
		return 0;
	n = h->p_filesz / sizeof(d);
	if (n > MAX_DYNAMIC || !is_inside(f, h->p_offset, h->p_filesz))
		return -ENOEXEC;
	/* Twice: the strings may come after their use. */
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			int r;

			memcpy(&d, f->data + h->p_offset + i * sizeof(d),
			       sizeof(d));
			if (d.d_tag == DT_NULL)
				break;
			if (pass == 0 && d.d_tag == DT_STRTAB)
				strings = file_offset(f, d.d_un.d_ptr);
			r = pass == 1 ? read_entry(f, &d, strings, ret) : 0;
			if (r < 0)
				return r;
		}
	return 0;
}

int elf_read(const void *data, size_t size, struct elf_needs *ret)
{
	struct image f = { .data = data, .size = size };
	const Elf64_Phdr *h;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = read_headers(&f);
	if (r < 0)
		return r;
	h = find_header(&f, PT_INTERP);
	if (h && (!is_inside(&f, h->p_offset, h->p_filesz) ||
		  copy(ret->loader, sizeof(ret->loader),
		       string_at(&f, h->p_offset)) < 0 ||
		  ret->loader[0] != '/'))
		return -ENOEXEC;
	return read_dynamic(&f, ret);
}

int elf_look(int fd, const char *path, struct elf_needs *ret, struct err *err)
{
	struct stat st;
	void *data;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return err_errno(err, -fd, "open '%s'", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return err_set(err, ENOEXEC, "'%s' is not a program", path);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return err_errno(err, errno, "read '%s'", path);
	r = elf_read(data, (size_t)st.st_size, ret);
	(void)munmap(data, (size_t)st.st_size);
	if (r == -ENOEXEC)
		return err_set(err, ENOEXEC,
			       "'%s' is not a program of this machine; a "
			       "script cannot be on a list of commands, since "
			       "its interpreter would have to be too",
			       path);
	return r < 0 ? err_set(err, -r, "out of memory") : 0;
}

void elf_needs_done(struct elf_needs *n)
{
	strv_done(&n->libraries);
}
