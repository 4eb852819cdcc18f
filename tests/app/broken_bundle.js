throw new Error("no");
